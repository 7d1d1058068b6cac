//! `bench-survival`: what the product does when it is killed, attacked and flooded, in figures.
//!
//! It drives the real daemon and client in homes of their own and watches from outside. It is no test: nothing is
//! asserted, every loss is counted and shown. The exit code is 1 if something was lost, doubled or left alive.

mod crashes;
mod figure;
mod flood;
mod kills;
mod machine;
mod watched;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::figure::Report;

/// Measures how the product survives.
#[derive(Debug, Parser)]
#[command(name = "bench-survival", version)]
struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// Prints one JSON object instead of tables.
    #[arg(long, global = true)]
    json: bool,
}

/// One measurement; without one, all of them.
#[derive(Debug, Clone, Subcommand)]
enum What {
    /// Time from the death of the daemon to the death of all that it had started, for each case and level.
    Kills(kills::Args),
    /// Random kills of daemon and shims over a long run: what is lost, doubled, left alive, and when the run goes on.
    Crashes(crashes::Args),
    /// Speed of taking output and the daemon's memory, against `cat > /dev/null`.
    Flood(flood::Args),
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let wanted = match args.what {
        Some(what) => vec![what],
        None => vec![
            What::Kills(kills::Args::default()),
            What::Crashes(crashes::Args::default()),
            What::Flood(flood::Args::default()),
        ],
    };
    let mut report = Report::new(machine::describe());
    for what in wanted {
        match what {
            What::Kills(args) => kills::measure(&args, &mut report),
            What::Crashes(args) => crashes::measure(&args, &mut report),
            What::Flood(args) => flood::measure(&args, &mut report),
        }
    }
    report.print(args.json)?;
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
