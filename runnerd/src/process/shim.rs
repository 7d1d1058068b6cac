//! The shim: a process that starts one program, watches it, and ends it with all that descends from it.
//!
//! This file is its way in: it takes its channels, makes itself hard to harm, and starts the leader. The watch itself
//! is in `watch`. A shim has one thread, no runtime, and nothing that it could lose.

use std::{
    env,
    fs::{self, File},
    io::{self, BufReader},
    os::fd::{AsFd, OwnedFd},
    process::ExitCode,
};

use nix::{
    errno::Errno,
    sys::{prctl, signalfd::SignalFd},
    unistd,
};

use super::{
    leader,
    mark::Mark,
    shield,
    watch::Watch,
    wire::{self, Order, Step, Word},
};

/// Runs the calling process as a shim: all of `main` when the first argument is [`SHIM_COMMAND`](super::SHIM_COMMAND).
///
/// Standard input is the live pipe, standard output the status pipe, standard error the program's output.
pub fn shim_main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        // Without channels there is nobody to tell; the daemon sees them close.
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    close_inherited()?;
    let mut channels = Channels::take()?;
    let order: Order = wire::read_line(&mut BufReader::new(&channels.live))?;
    match start(order, &channels) {
        Ok((watch, lock)) => {
            // A copy that stayed here would keep the output open after its last writer.
            drop(channels.output.take());
            wire::say(&channels.status, &Word::Started)?;
            let over = watch.until_over(&channels.live, &channels.status);
            // Before the last word, so that whoever has heard it finds the lock free.
            drop(lock);
            wire::say(&channels.status, &Word::Over(over))
        }
        Err((step, error)) => {
            let errno = error.raw_os_error().unwrap_or(Errno::EINVAL as i32);
            wire::say(&channels.status, &Word::Refused { step, errno })
        }
    }
}

fn start(order: Order, channels: &Channels) -> Result<(Watch, File), (Step, io::Error)> {
    let signals = harden(&order).map_err(|error| (Step::SetUp, error))?;
    let lock = File::options().create(true).append(true).open(&order.lock).map_err(|error| (Step::LockFile, error))?;
    lock.try_lock().map_err(|error| (Step::Lock, error.into()))?;
    env::set_current_dir(&order.cwd).map_err(|error| (Step::Folder, error))?;
    let output = channels.output.as_ref().expect("BUG: the output is given away after the start");
    let leader = leader::start(&order, output.as_fd()).map_err(|error| (Step::Exec, error))?;
    Ok((Watch::new(leader, signals, order), lock))
}

/// Closes all but the three channels: what the daemon inherited without knowing must not reach the program.
fn close_inherited() -> io::Result<()> {
    let mut open = Vec::new();
    for item in fs::read_dir("/proc/self/fd")? {
        open.extend(item?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // One of them was the listing itself, which is closed by now.
        let _ = unistd::close(fd);
    }
    Ok(())
}

/// All of it comes before the leader exists, which inherits the mark and the denial of privileges.
fn harden(order: &Order) -> io::Result<SignalFd> {
    let signals = shield::shield_shim()?;
    unistd::setsid()?;
    prctl::set_child_subreaper(true)?;
    // Closes /proc/<shim>/fd to the program, through which it could speak for the shim.
    prctl::set_dumpable(false)?;
    if order.no_new_privs {
        prctl::set_no_new_privs()?;
    }
    // Refused where a lower limit is inherited; the variable remains.
    let _ = Mark::new(order.mark.as_str()).put_on_this_process();
    Ok(signals)
}

/// The three pipes that tie a shim to its daemon, moved off the standard descriptors.
struct Channels {
    live: File,
    status: File,
    output: Option<OwnedFd>,
}

impl Channels {
    fn take() -> io::Result<Self> {
        let channels = Self {
            live: io::stdin().as_fd().try_clone_to_owned()?.into(),
            status: io::stdout().as_fd().try_clone_to_owned()?.into(),
            output: Some(io::stderr().as_fd().try_clone_to_owned()?),
        };
        let null = File::options().read(true).write(true).open("/dev/null")?;
        unistd::dup2_stdin(&null)?;
        unistd::dup2_stdout(&null)?;
        unistd::dup2_stderr(&null)?;
        Ok(channels)
    }
}
