//! Whether the caller still waits for an answer: set by the socket, checked by operations that have something to clean
//! up.

use tokio_util::sync::CancellationToken;

/// Cancelled when the caller has gone away.
#[derive(Debug, Clone, Default)]
pub struct ClientDisconnected(pub CancellationToken);

/// Present if the caller runs inside an iteration, or may do so.
#[derive(Debug, Clone, Copy)]
pub struct InsideIteration;
