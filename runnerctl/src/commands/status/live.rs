//! `status --watch`: in one place of a terminal, else a block or an object per change.

use std::pin::pin;
use std::time::Duration;

use jsonrpsee::core::client::{Client, Error};
use protocol::api::RunApiClient as _;
use protocol::error::ExitStatus;
use protocol::path::WirePath;
use protocol::request::AtRun;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use super::shown::Shown;
use crate::failure::Failure;
use crate::feed::{AWAY, Feed, News, Subject};
use crate::invocation::Invocation;
use crate::repaint::Repaint;
use crate::ui::Ui;

/// How often times that are shown go on.
const SECOND: Duration = Duration::from_secs(1);

/// One run, or all repositories.
struct Followed(Option<AtRun>);

impl Subject for Followed {
    type View = Shown;

    fn path(&self) -> Option<&WirePath> {
        self.0.as_ref().map(|at| &at.path)
    }

    async fn read(&self, client: &Client) -> Result<Shown, Error> {
        match &self.0 {
            Some(at) => client.status(at.clone()).await.map(|status| Shown::One(Box::new(status))),
            None => client.status_all().await.map(Shown::All),
        }
    }
}

/// Shows a state whenever it changes, until Ctrl-C.
pub(super) async fn follow(invocation: &Invocation<'_>, at: Option<AtRun>) -> Result<ExitStatus, Failure> {
    let listen = |kind| signal(kind).map_err(|error| Failure::io("listening for signals", &error));
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut resized = listen(SignalKind::window_change())?;
    let mut feed = Feed::open(invocation, Followed(at)).await?;
    let mut page = Page::new(invocation.ui);
    loop {
        let mut news = pin!(feed.next());
        let news = loop {
            tokio::select! {
                biased;
                _ = interrupt.recv() => return Ok(ExitStatus::Interrupted),
                news = &mut news => break news?,
                told = page.time(&mut resized) => page.again(told)?,
            }
        };
        page.take(news)?;
    }
}

/// Why a page is shown again though nothing is new.
enum Time {
    /// A second has gone by.
    Clock,
    /// The terminal has another size.
    Resized,
}

struct Page<'a> {
    ui: &'a Ui,
    place: Option<Repaint<'a>>,
    shown: Option<Shown>,
    is_away: bool,
    tick: Instant,
}

impl<'a> Page<'a> {
    fn new(ui: &'a Ui) -> Self {
        Self { ui, place: Repaint::begin(ui), shown: None, is_away: false, tick: Instant::now() + SECOND }
    }

    /// Returns when the page must be painted again though nothing is new.
    async fn time(&self, resized: &mut Signal) -> Time {
        let counts = self.place.is_some() && self.shown.as_ref().is_some_and(Shown::needs_clock);
        tokio::select! {
            () = sleep_until(self.tick), if counts => Time::Clock,
            Some(()) = resized.recv(), if self.place.is_some() => Time::Resized,
            else => std::future::pending().await,
        }
    }

    fn again(&mut self, why: Time) -> Result<(), Failure> {
        if let (Time::Resized, Some(place)) = (why, &mut self.place) {
            place.clear()?;
        }
        self.paint()
    }

    fn take(&mut self, news: News<Shown>) -> Result<(), Failure> {
        match news {
            News::Event(_) => Ok(()),
            News::Lost => {
                self.is_away = true;
                if self.place.is_none() {
                    self.ui.note(&format!("{AWAY}\n"));
                }
                self.paint()
            }
            News::Status(shown) => {
                let is_new = self.shown.as_ref() != Some(&*shown);
                let is_first = self.shown.replace(*shown).is_none();
                self.is_away = false;
                if is_new && self.place.is_none() { self.print(is_first) } else { self.paint() }
            }
        }
    }

    /// Prints what is new below what was printed.
    fn print(&self, is_first: bool) -> Result<(), Failure> {
        let Some(shown) = &self.shown else { return Ok(()) };
        if self.ui.json {
            return shown.object();
        }
        let gap = if is_first { "" } else { "\n" };
        self.ui.text(&format!("{gap}{}", shown.text(&self.ui.screen())))
    }

    /// Paints over what was painted, where that can be done.
    fn paint(&mut self) -> Result<(), Failure> {
        self.tick = Instant::now() + SECOND;
        let (Some(place), Some(shown)) = (&mut self.place, &self.shown) else { return Ok(()) };
        let away = if self.is_away { format!("{AWAY}\n") } else { String::new() };
        let text = shown.text(&self.ui.screen());
        place.paint(&format!("{away}{}", if text.is_empty() { "No repositories.\n" } else { &text }))
    }
}
