//! The scripted model as a program, for trying an agent by hand: `mock-model SCRIPT.toml [PORT]`.
//!
//! It prints its address, then each request as it arrives, until it is stopped. It is only for loopback.

use std::error::Error;
use std::io::{self, Write as _};
use std::time::Duration;

use runner_testkit::model::{self, ModelServer};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: mock-model SCRIPT.toml [PORT]")?;
    let port = args.next().map_or(Ok(0), |port| port.parse())?;
    let model = ModelServer::listen(port, model::parse_script(&std::fs::read_to_string(path)?)?)?;
    let mut output = io::stdout();
    writeln!(output, "{}", model.url())?;
    let mut shown = 0;
    loop {
        for request in model.wait_beyond(shown, Duration::MAX) {
            shown += 1;
            let last = request.tool_results().pop().unwrap_or_else(|| request.user_text());
            let last: String = last.chars().take(200).collect();
            writeln!(output, "{} {} {last:?}", request.path, request.model())?;
        }
    }
}
