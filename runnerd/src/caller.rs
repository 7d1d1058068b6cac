//! Whether somebody still waits for an answer: told by the socket, asked by what has something to clear away.

use tokio_util::sync::CancellationToken;

/// Is cancelled when the caller has gone away.
#[derive(Debug, Clone, Default)]
pub struct CallerLeft(pub CancellationToken);
