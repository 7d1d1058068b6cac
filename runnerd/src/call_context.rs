//! Who waits for an answer, and whether still: told by the socket, asked by what has something to clear away.

use tokio_util::sync::CancellationToken;

/// Is cancelled when the caller has gone away.
#[derive(Debug, Clone, Default)]
pub struct ClientDisconnected(pub CancellationToken);

/// Is there where the caller runs inside of an iteration, or may do so.
#[derive(Debug, Clone, Copy)]
pub struct InsideIteration;
