//! The real server with the real daemon, tested with bytes over a socket: no HTTP client corrects the requests.

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
