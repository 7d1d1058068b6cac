//! `runner-ui`: listens, prints its URL, and runs until told to stop; or exports a run to a file and exits.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use clap::Parser as _;
use runner_ui::wire::{ErrorReply, Started};
use runner_ui::{AccessKeys, App, Args, LoopbackListeners, export, serve, startup_error};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report_error(&args, &error);
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
    let keys = new_keys(0, args)?;
    let apps = App::open(args, &keys, &CancellationToken::new()).await;
    let summary = export(&apps[0], to, args).await?;
    let text = if args.json { to_json(&summary) } else { summary.cuts.join("\n") };
    print_line(&mut io::stdout(), &text).map_err(|error| startup_error("saying what was written", &error, None))
}

fn new_keys(port: u16, args: &Args) -> Result<Arc<AccessKeys>, ErrorReply> {
    let keys = AccessKeys::new(port, args.steer);
    keys.map(Arc::new).map_err(|error| startup_error("asking the system for random numbers", &error, None))
}

async fn serve_page(args: &Args) -> Result<(), ErrorReply> {
    let listening = format!("listening on port {} of this machine", args.port);
    let listeners = LoopbackListeners::bind(args.port)
        .await
        .map_err(|error| startup_error(&listening, &error, Some("runnerctl ui")))?;
    let keys = new_keys(listeners.port, args)?;
    let stop = CancellationToken::new();
    stop_on_signals(args, stop.clone()).map_err(|error| startup_error("listening for signals", &error, None))?;
    let apps = App::open(args, &keys, &stop).await;
    // If there are several machines, one that does not answer must not block the others.
    if let [app] = apps.as_slice() {
        app.check_available().await?;
    }
    print_address(args, &keys).map_err(|error| startup_error("writing the address", &error, None))?;
    tokio::select! {
        () = serve(listeners, apps, stop) => {}
        () = reprint_address(args, &keys) => {}
    }
    Ok(())
}

/// Prints the page's URL.
fn print_address(args: &Args, keys: &AccessKeys) -> io::Result<()> {
    let info =
        Started { url: keys.url(), url_once: keys.url_once(), token: keys.token().to_owned(), pid: std::process::id() };
    let text = if args.json { to_json(&info) } else { info.url.clone() };
    print_line(&mut io::stdout(), &text)
}

/// Prints the URL again whenever it was used; a closed standard output is not an error.
async fn reprint_address(args: &Args, keys: &AccessKeys) {
    loop {
        keys.wait_until_used().await;
        let _ = print_address(args, keys);
    }
}

/// Prints why the server cannot start; failing to print that is ignored.
fn report_error(args: &Args, error: &ErrorReply) {
    let _ = if args.json {
        print_line(&mut io::stdout(), &to_json(error))
    } else {
        let hint = error.error.hint.as_ref().map_or_else(String::new, |hint| format!("\n\nhint: {hint}"));
        print_line(&mut io::stderr(), &format!("error: {}{hint}", error.error.message))
    };
}

fn print_line(out: &mut impl io::Write, line: &str) -> io::Result<()> {
    writeln!(out, "{line}")?;
    out.flush()
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("BUG: an answer has no form as JSON")
}

/// Stops everything on a signal, and at the end of standard input if requested.
fn stop_on_signals(args: &Args, stop: CancellationToken) -> io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
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
