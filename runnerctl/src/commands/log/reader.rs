//! Reads a file of a record: as a whole, while it grows, or byte for byte.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use protocol::api::{IterationApiClient as _, RunApiClient as _};
use protocol::client::{CallError, Connection, EventStream};
use protocol::error::ErrorKind;
use protocol::request::{AtRun, LogParams, Subscription};
use protocol::view::TextView;
use tokio::time::timeout;

use crate::events::{DAEMON_AWAY, wait_for_connection};
use crate::failure::{Failure, is_refusal};
use crate::invocation::Invocation;
use crate::pager::Pager;
use crate::text::sanitize::sanitize_lines;
use crate::ui::Ui;

/// Polling interval for new text, in case no event announces it.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Reads one file of a record.
pub(super) struct LogReader<'a> {
    /// Where it is printed, and how a daemon is reached.
    pub(super) invocation: &'a Invocation<'a>,
    /// The daemon to read from.
    pub(super) connection: Arc<Connection>,
    /// The next part to read.
    pub(super) params: LogParams,
}

impl LogReader<'_> {
    /// Prints what exists now.
    pub(super) async fn print_whole(mut self) -> Result<(), Failure> {
        // Report a missing file before a pager takes over the terminal.
        let mut part = self.read_part().await?;
        let ui = self.invocation.ui;
        let mut pager = (!ui.json).then(|| Pager::open(ui));
        let mut all = String::new();
        loop {
            match &mut pager {
                Some(pager) => pager.write(&sanitize_lines(&part.text))?,
                None => all += &part.text,
            }
            if part.complete || part.text.is_empty() {
                break;
            }
            part = self.read_part().await?;
        }
        self.note_empty(part.complete);
        match pager {
            Some(pager) => pager.close(),
            None => Ui::print_object("log", &TextView { text: all, ..part }),
        }
    }

    /// Writes the bytes unchanged.
    pub(super) async fn write_raw(mut self) -> Result<(), Failure> {
        self.params.raw = true;
        if io::stdout().is_terminal() {
            return Err(Failure::usage("an agent's output can control a terminal: send --raw to a file or a pipe")
                .hint("runnerctl log --raw > FILE"));
        }
        loop {
            let part = self.read_part().await?;
            let bytes = decode_base64(&part.text);
            let mut out = io::stdout().lock();
            let written = out.write_all(&bytes).and_then(|()| out.flush());
            written.map_err(|error| Failure::io("writing output", &error))?;
            if part.complete || bytes.is_empty() {
                return Ok(());
            }
        }
    }

    /// Prints existing and new text until the file is complete, even across restarts of the daemon.
    pub(super) async fn follow(mut self) -> Result<(), Failure> {
        let subscription = Subscription { path: Some(self.params.at.path.clone()), since: None, output: true };
        let mut link = EventStream::new(self.invocation.connect_options(false), subscription);
        link.follow(Arc::clone(&self.connection)).await?;
        let mut is_announced = false;
        loop {
            let part = match self.fetch_part().await {
                Ok(part) => part,
                Err(CallError::Gone) => {
                    self.invocation.ui.print_note(&format!("{DAEMON_AWAY}\n"));
                    // The event stream notices the lost connection with a delay.
                    while link.connection().is_some_and(|known| Arc::ptr_eq(known, &self.connection)) {
                        link.next().await;
                    }
                    self.connection = wait_for_connection(&mut link).await?;
                    continue;
                }
                Err(error) if self.is_not_started(&error).await => {
                    if !std::mem::replace(&mut is_announced, true) {
                        self.invocation.ui.print_note("No iteration yet; waiting for the first.\n");
                    }
                    wait_for_more(&mut link).await;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let ui = self.invocation.ui;
            if ui.json && !part.text.is_empty() {
                Ui::print_object("log", &part)?;
            } else if !ui.json {
                ui.print_text(&sanitize_lines(&part.text))?;
            }
            if part.complete {
                self.note_empty(true);
                return Ok(());
            }
            if part.text.is_empty() {
                wait_for_more(&mut link).await;
            }
        }
    }

    /// Says that there is nothing to print.
    fn note_empty(&self, is_complete: bool) {
        if self.params.offset == 0 {
            let file = self.params.stream.file_name();
            let yet = if is_complete { "" } else { " yet" };
            self.invocation.ui.print_note(&format!("{file} is empty: nothing was recorded{yet}\n"));
        }
    }

    /// Whether the error means that the run has not started its first iteration yet.
    async fn is_not_started(&self, error: &CallError) -> bool {
        let at = &self.params.at;
        if at.iter.is_some() || !is_refusal(error, ErrorKind::NotFound) {
            return false;
        }
        let status = self.connection.client().status(AtRun { path: at.path.clone(), run: at.run.clone() }).await;
        status.is_ok_and(|status| status.run.is_some_and(|run| !run.summary.state.is_terminal()))
    }

    async fn read_part(&mut self) -> Result<TextView, Failure> {
        Ok(self.fetch_part().await?)
    }

    async fn fetch_part(&mut self) -> Result<TextView, CallError> {
        let part = self.connection.client().log(self.params.clone()).await?;
        self.params.offset = part.next_offset;
        Ok(part)
    }
}

/// Waits until something happens in the repository, or a timeout.
async fn wait_for_more(link: &mut EventStream) {
    let _ = timeout(LONGEST_WAIT, link.next()).await;
}

/// Decodes base64 as the daemon encodes it: complete groups, padded.
fn decode_base64(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in text.as_bytes().chunks(4) {
        let digits: Vec<u8> = group.iter().copied().take_while(|c| *c != b'=').collect();
        let bits = digits.iter().fold(0_u32, |bits, c| bits << 6 | u32::from(digit(*c))) << (6 * (4 - digits.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..][..digits.len().saturating_sub(1)]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_with_and_without_padding() {
        for (text, bytes) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob")] {
            assert_eq!(decode_base64(text), bytes.as_bytes());
        }
        assert_eq!(decode_base64("G1sySv/+"), b"\x1b[2J\xff\xfe");
    }
}
