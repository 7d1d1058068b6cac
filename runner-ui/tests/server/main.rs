//! The real server before the real daemon, asked over a socket byte by byte: nothing in between is polite for it.

mod door;
mod files;
mod hostile;
mod kit;
mod limits;
mod records;
mod replies;
mod steering;
mod streams;
mod texts;
