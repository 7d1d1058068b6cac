//! `runner-ui`: listens, prints its URL, and runs until told to stop; or exports a run to a file and exits.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use clap::Parser as _;
use runner_ui::wire::{ErrorReply, Started};
use runner_ui::{AccessKeys, App, Args, LoopbackListeners, export, failed, serve};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&args, &error);
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &Args) -> Result<(), ErrorReply> {
    match &args.export {
        Some(to) => write_file(args, to).await,
        None => serve_page(args).await,
    }
}

/// Exports a run to a file and prints a summary.
async fn write_file(args: &Args, to: &Path) -> Result<(), ErrorReply> {
    // No requests are possible: there is no port.
    let keys = keys(0, args)?;
    let apps = App::open(args, &keys, &CancellationToken::new()).await;
    let made = export(&apps[0], to, args).await?;
    let text = if args.json { json(&made) } else { made.cuts.join("\n") };
    say(&mut io::stdout(), &text).map_err(|error| failed("saying what was written", &error, None))
}

fn keys(port: u16, args: &Args) -> Result<Arc<AccessKeys>, ErrorReply> {
    let keys = AccessKeys::new(port, args.steer);
    keys.map(Arc::new).map_err(|error| failed("asking the system for random numbers", &error, None))
}

async fn serve_page(args: &Args) -> Result<(), ErrorReply> {
    let listening = format!("listening on port {} of this machine", args.port);
    let bound =
        LoopbackListeners::on(args.port).await.map_err(|error| failed(&listening, &error, Some("runnerctl ui")))?;
    let keys = keys(bound.port, args)?;
    let stop = CancellationToken::new();
    end_with(args, stop.clone()).map_err(|error| failed("listening for signals", &error, None))?;
    let apps = App::open(args, &keys, &stop).await;
    // If there are several machines, one that does not answer must not block the others.
    if let [app] = apps.as_slice() {
        app.check().await?;
    }
    tell(args, &keys).map_err(|error| failed("writing the address", &error, None))?;
    tokio::select! {
        () = serve(bound, apps, stop) => {}
        () = tell_again(args, &keys) => {}
    }
    Ok(())
}

/// Prints the page's URL.
fn tell(args: &Args, keys: &AccessKeys) -> io::Result<()> {
    let started =
        Started { url: keys.url(), url_once: keys.url_once(), token: keys.token().to_owned(), pid: std::process::id() };
    let text = if args.json { json(&started) } else { started.url.clone() };
    say(&mut io::stdout(), &text)
}

/// Prints the URL again whenever it was used; a closed standard output is not an error.
async fn tell_again(args: &Args, keys: &AccessKeys) {
    loop {
        keys.used().await;
        let _ = tell(args, keys);
    }
}

/// Prints why the server cannot start; failing to print that is ignored.
fn complain(args: &Args, error: &ErrorReply) {
    let _ = if args.json {
        say(&mut io::stdout(), &json(error))
    } else {
        let hint = error.error.hint.as_ref().map_or_else(String::new, |hint| format!("\n\nhint: {hint}"));
        say(&mut io::stderr(), &format!("error: {}{hint}", error.error.message))
    };
}

fn say(out: &mut impl io::Write, line: &str) -> io::Result<()> {
    writeln!(out, "{line}")?;
    out.flush()
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("BUG: an answer has no form as JSON")
}

/// Stops everything on a signal, and at the end of standard input if requested.
fn end_with(args: &Args, stop: CancellationToken) -> io::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut hangup = signal(SignalKind::hangup())?;
    if args.until_eof {
        let stop = stop.clone();
        // On a separate thread: nothing waits for it when the program ends otherwise.
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
