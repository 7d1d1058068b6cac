//! The listening sockets, and limits on clients: number, size and time.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::caller::ConnectionEnds;
use crate::connection_limit::ConnectionLimit;
use crate::head::HEAD_BYTES;
use crate::routes;

const MAX_CONNECTIONS: usize = 128;
/// Connections among these that have not authenticated yet.
const MAX_UNAUTHENTICATED: usize = 64;
/// Time limit for a request's head; an idle connection is closed after it.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for a client to receive what is sent.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Grace period for replies in flight when the server stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// The listening sockets.
#[derive(Debug)]
pub struct LoopbackListeners {
    listeners: Vec<TcpListener>,
    /// Port number of the sockets.
    pub port: u16,
}

impl LoopbackListeners {
    /// Listens on loopback; port 0 picks a free one. On a machine without IPv6 there is one socket less.
    ///
    /// # Errors
    ///
    /// Fails if the port is taken.
    pub async fn bind(port: u16) -> io::Result<Self> {
        let first = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        let port = first.local_addr()?.port();
        let second = TcpListener::bind(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).await;
        match second {
            Ok(second) => Ok(Self { listeners: vec![first, second], port }),
            // A program that owns that port would receive what browsers send to `localhost`.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
            Err(_) => Ok(Self { listeners: vec![first], port }),
        }
    }
}

/// Serves requests until `stop` is cancelled, then ends every stream, which takes 2 seconds at most.
pub async fn serve(listeners: LoopbackListeners, apps: Vec<App>, stop: CancellationToken) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let places = ConnectionLimit::new(MAX_UNAUTHENTICATED);
    let server = UiServer { routes: routes::build_router(apps), stop, slots, connection_limit: places };
    let tasks = TaskTracker::new();
    for listener in listeners.listeners {
        tasks.spawn(server.clone().accept_loop(listener, tasks.clone()));
    }
    tasks.close();
    tasks.wait().await;
}

#[derive(Clone)]
struct UiServer {
    routes: Router,
    stop: CancellationToken,
    slots: Arc<Semaphore>,
    connection_limit: ConnectionLimit,
}

impl UiServer {
    async fn accept_loop(self, listener: TcpListener, tasks: TaskTracker) {
        loop {
            let next = async {
                let slot = Arc::clone(&self.slots).acquire_owned().await.expect("BUG: the slots are never closed");
                (listener.accept().await, slot)
            };
            tokio::select! {
                () = self.stop.cancelled() => return,
                (accepted, slot) = next => match accepted {
                    Ok((stream, _)) => drop(tasks.spawn(self.clone().serve_connection(stream, slot))),
                    // Too many open files, or a connection that is gone already.
                    Err(_) => sleep(ACCEPT_PAUSE).await,
                },
            }
        }
    }

    async fn serve_connection(self, stream: TcpStream, slot: OwnedSemaphorePermit) {
        let guard = self.connection_limit.admit();
        // A connection that is gone already sends no requests.
        let Ok(ends) = ConnectionEnds::from_stream(&stream) else { return };
        let routes = self.routes.layer(Extension(Arc::clone(&guard))).layer(Extension(ends));
        let mut patient = TimeoutStream::new(stream);
        patient.set_write_timeout(Some(WRITE_TIMEOUT));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(Box::pin(patient)), TowerToHyperService::new(routes));
        tokio::pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => {}
            () = guard.evicted() => {}
            () = self.stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                let _ = timeout(STOP_TIMEOUT, connection).await;
            }
        }
        drop(slot);
    }
}
