//! The routes. All of them only read, except one that steers, if the server was started for that.

use axum::Extension;
use axum::Router;
use axum::extract::{OriginalUri, State};
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::HeaderMap;
use http::header::SET_COOKIE;
use protocol::request::LogStream;

use crate::access::{AddressLogin, SESSION_PATH, STEER_SUFFIX, check_origin, check_token};
use crate::app::App;
use crate::body::JsonReply;
use crate::head::check_head_size;
use crate::problem::ApiProblem;
use crate::target::RequestTarget;
use crate::wire::Session;
use crate::{assets, compress, headers, steer, stream};

/// The texts of an iteration's record, by the last segment of their path.
pub(crate) const TEXTS: [(&str, LogStream); 10] = [
    ("prompt", LogStream::Prompt),
    ("executor.log", LogStream::Agent),
    ("guard.log", LogStream::Guard),
    ("guard-accepted.log", LogStream::GuardAccepted),
    ("guard-rerun.log", LogStream::GuardRerun),
    ("reviewer.log", LogStream::Review),
    ("review", LogStream::ReviewAnswer),
    ("output", LogStream::Output),
    ("diff", LogStream::Diff),
    ("events", LogStream::Events),
];

/// Returns the router: the first machine at the root, each other one below its own prefix.
pub(crate) fn build_router(apps: Vec<App>) -> Router {
    let mut machines = apps.into_iter().map(machine_router);
    let first = machines.next().unwrap_or_default();
    machines.zip(1..).fold(first, |router, (machine, at)| router.nest(&format!("/m/{at}"), machine))
}

fn machine_router(app: App) -> Router {
    let steering = if app.keys.can_steer() {
        Router::new().route(&format!("/api/repos/{{repo}}{STEER_SUFFIX}"), post(steer::steer).get(steer::reject_get))
    } else {
        Router::new()
    };
    let authenticated = steering
        .route(SESSION_PATH, get(session))
        .route("/api/health", get(health))
        .route("/api/repos", get(repositories))
        .route("/api/repos/{repo}", get(status))
        .nest("/api/repos/{repo}", repository_router())
        .nest("/api", repository_router())
        .route("/api/{*unknown}", get(unknown_path))
        .route("/events", get(stream::serve_events))
        .layer(from_fn_with_state(app.clone(), check_token));
    authenticated
        .fallback(assets::serve_asset)
        .layer(from_fn_with_state(app.clone(), check_origin))
        .layer(from_fn(check_head_size))
        .layer(from_fn(compress::compress_reply))
        .layer(map_response(headers::add_security_headers))
        .with_state(app)
}

/// Returns the routes of one repository.
fn repository_router() -> Router<App> {
    let router = Router::new()
        .route("/tree", get(tree))
        .route("/run-state", get(status))
        .route("/config", get(config))
        .route("/memory", get(memory))
        .route("/questions", get(questions))
        .route("/runs", get(runs))
        .route("/baseline.log", get(|request: TextRequest| serve_text(request, LogStream::Baseline)))
        .route("/iterations", get(iterations))
        .route("/iterations/{run}/{iter}", get(iteration))
        .route("/iterations/{run}/{iter}/activity", get(activity));
    TEXTS.into_iter().fold(router, |router, (name, stream)| {
        router.route(
            &format!("/iterations/{{run}}/{{iter}}/{name}"),
            get(move |request: TextRequest| serve_text(request, stream)),
        )
    })
}

async fn session(State(app): State<App>, by_address: Option<Extension<AddressLogin>>, headers: HeaderMap) -> Response {
    let steer_token = by_address.and_then(|_| app.keys.steer_token(&headers)).map(str::to_owned);
    let session = Session { health: app.health_now().await, steer_token };
    ([(SET_COOKIE, app.keys.cookie())], JsonReply(session)).into_response()
}

async fn health(State(app): State<App>) -> Response {
    JsonReply(app.health_now().await).into_response()
}

async fn repositories(State(app): State<App>) -> Result<Response, ApiProblem> {
    Ok(JsonReply(app.repositories().await?).into_response())
}

/// Defines handlers for what a request names.
macro_rules! answers {
    ($($name:ident)+) => {
        $(async fn $name(State(app): State<App>, target: RequestTarget) -> Result<Response, ApiProblem> {
            Ok(JsonReply(app.locate(target).await?.$name().await?).into_response())
        })+
    };
}
answers! { status tree config memory questions runs iterations iteration activity }

/// Arguments of a handler for a text.
type TextRequest = (State<App>, OriginalUri, RequestTarget, HeaderMap);

async fn serve_text(
    (State(app), OriginalUri(uri), target, headers): TextRequest,
    stream: LogStream,
) -> Result<Response, ApiProblem> {
    Ok(app.locate(target).await?.text(stream).await?.into_reply(uri.path(), &headers))
}

async fn unknown_path() -> ApiProblem {
    ApiProblem::not_found("there is no such path")
}
