//! `runner-ui`: listens, says where, and ends when told to.

use std::io::{self, Write as _};
use std::thread;

use anyhow::Context as _;
use clap::Parser as _;
use runner_ui::wire::Started;
use runner_ui::{App, Args, Bound, Keys, serve};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

#[tokio::main(worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let bound = Bound::on(args.port).await.with_context(|| format!("listening on port {} of loopback", args.port))?;
    let keys = Keys::new(bound.port).context("asking the system for random numbers")?;
    let started = Started { url: keys.url(), pid: std::process::id() };
    let stop = CancellationToken::new();
    end_with(&args, stop.clone())?;
    let app = App::open(&args, keys, stop.clone()).await;
    announce(&args, &started).context("writing the address")?;
    serve(bound, app, stop).await;
    Ok(())
}

fn announce(args: &Args, started: &Started) -> io::Result<()> {
    let line = if args.json { serde_json::to_string(started)? } else { started.url.clone() };
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Has everything end with a signal, and with standard input where that is asked for.
fn end_with(args: &Args, stop: CancellationToken) -> io::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut hangup = signal(SignalKind::hangup())?;
    if args.until_eof {
        let stop = stop.clone();
        // A thread of its own: nothing waits for it when the program ends otherwise.
        thread::Builder::new().spawn(move || {
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            stop.cancel();
        })?;
    }
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        stop.cancel();
    });
    Ok(())
}
