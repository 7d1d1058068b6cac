//! Decides who may send requests: a token in the URL, which is exchanged for a cookie, and a check that requests come
//! from the page itself; and who may steer, if steering is enabled.
//!
//! Any program on the machine can connect to a port on loopback, and any web page can make a browser do so.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{ALLOW, AUTHORIZATION, COOKIE, HOST, HeaderName, ORIGIN};
use http::{HeaderMap, Method, StatusCode};
use subtle::ConstantTimeEq as _;
use tokio::sync::Notify;

use crate::app::App;
use crate::connection_limit::ConnectionGuard;
use crate::problem::ApiProblem;
use crate::steer::STEER_TOKEN;

/// Path at which a token is exchanged for the cookie.
pub(crate) const SESSION_PATH: &str = "/api/session";
/// Suffix of the path that steers.
pub(crate) const STEER_SUFFIX: &str = "/steer";
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
/// Host names under which a browser on this machine reaches the server.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// A secret of 256 bits, encoded as text that fits a URL and a cookie.
#[derive(Clone)]
pub(crate) struct AccessToken(String);

impl AccessToken {
    /// Creates a token from the system's random numbers.
    ///
    /// # Errors
    ///
    /// Fails if the system provides none.
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Returns the token's text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in constant time.
    fn matches(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// The secrets of one server.
#[derive(Debug)]
pub struct AccessKeys {
    port: u16,
    /// Token that programs send in a header; it never appears in a URL, since browsers store those.
    token: AccessToken,
    /// Token in the URL that is printed for the user; it is replaced after each use.
    printed: Mutex<Option<AccessToken>>,
    /// Notified when the printed token is used.
    address_used: Notify,
    /// Token in the URL that a browser is started with: other users can see a program's arguments, so it is good for
    /// one use.
    ticket: Mutex<Option<AccessToken>>,
    /// Value of the cookie: browsers send it to every server on this host, unlike the token.
    session: AccessToken,
    /// Additional token for steering, a different one for each name of [`LOOPBACK`]: what a page learned under one name
    /// is worthless under another. `None` if the server is read-only.
    steer_tokens: Option<[AccessToken; LOOPBACK.len()]>,
}

/// Marks a request that was admitted by the token of a URL.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AddressLogin;

impl AccessKeys {
    /// Creates the keys of a server on a port.
    ///
    /// # Errors
    ///
    /// Fails if the system provides no random numbers.
    pub fn new(port: u16, steers: bool) -> Result<Self, getrandom::Error> {
        let new_one_time = || Ok(Mutex::new(Some(AccessToken::random()?)));
        let printed = new_one_time()?;
        let ticket = new_one_time()?;
        let used = Notify::new();
        let steer =
            steers.then(|| Ok([AccessToken::random()?, AccessToken::random()?, AccessToken::random()?])).transpose()?;
        Ok(Self {
            port,
            token: AccessToken::random()?,
            printed,
            address_used: used,
            ticket,
            session: AccessToken::random()?,
            steer_tokens: steer,
        })
    }

    /// Whether the server was started to steer.
    pub(crate) fn can_steer(&self) -> bool {
        self.steer_tokens.is_some()
    }

    /// Returns the steering token for the host name of a request.
    pub(crate) fn steer_token(&self, headers: &HeaderMap) -> Option<&str> {
        self.find_steer_token(headers).map(AccessToken::as_str)
    }

    /// Whether a request may steer, judging by its headers.
    pub(crate) fn may_steer(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(STEER_TOKEN).iter();
        let first = values.next().and_then(|shown| shown.to_str().ok());
        let is_valid = first.zip(self.find_steer_token(headers)).is_some_and(|(shown, token)| token.matches(shown));
        is_valid && values.next().is_none()
    }

    fn find_steer_token(&self, headers: &HeaderMap) -> Option<&AccessToken> {
        let host = headers.get(HOST)?.to_str().ok()?;
        let name = LOOPBACK.iter().position(|name| self.is_named(host, name))?;
        self.steer_tokens.as_ref()?.get(name)
    }

    /// Returns the token for the header `Authorization: Bearer`.
    pub fn token(&self) -> &str {
        self.token.as_str()
    }

    /// Returns the URL of the page, which can be used once; empty if it has been used up.
    pub fn url(&self) -> String {
        self.address(&self.printed)
    }

    /// Returns a second URL of the page, which can be used once; empty if it has been used.
    pub fn url_once(&self) -> String {
        self.address(&self.ticket)
    }

    /// Waits until the printed URL is used; from then on it is a different one.
    pub async fn wait_until_used(&self) {
        self.address_used.notified().await;
    }

    fn address(&self, one_time: &Mutex<Option<AccessToken>>) -> String {
        let address = |token: &AccessToken| format!("http://127.0.0.1:{}/#token={}", self.port, token.as_str());
        lock_token(one_time).as_ref().map_or_else(String::new, address)
    }

    /// Returns the cookie for admitted clients. Cookies are not bound to a port, so the cookie's name is.
    pub(crate) fn cookie(&self) -> String {
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name(), self.session.as_str())
    }

    /// Whether a request is admitted by a reusable secret: the header or the cookie.
    fn is_authenticated(&self, headers: &HeaderMap) -> bool {
        self.has_token(headers) || self.has_cookie(headers)
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        bearer_token(headers).is_some_and(|token| self.token.matches(token))
    }

    fn redeem_ticket(&self, headers: &HeaderMap) -> bool {
        let Some(token) = bearer_token(headers) else { return false };
        if take_if_matches(&self.ticket, token) {
            return true;
        }
        let is_printed = take_if_matches(&self.printed, token);
        if is_printed {
            *lock_token(&self.printed) = AccessToken::random().ok();
            self.address_used.notify_one();
        }
        is_printed
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie_name();
        let lines = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(key, value)| key == name && self.session.matches(value))
    }

    fn cookie_name(&self) -> String {
        format!("runner_ui_{}", self.port)
    }

    /// Whether a host name is this server's own: a foreign page may have its own name resolve to loopback.
    fn is_own_host(&self, host: &str) -> bool {
        LOOPBACK.iter().any(|name| self.is_named(host, name))
    }

    fn is_named(&self, host: &str, name: &str) -> bool {
        match host.strip_prefix(name) {
            Some("") => self.port == 80,
            Some(rest) => rest.strip_prefix(':').is_some_and(|port| port == self.port.to_string()),
            None => false,
        }
    }
}

fn lock_token(token: &Mutex<Option<AccessToken>>) -> MutexGuard<'_, Option<AccessToken>> {
    token.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Consumes a single-use token if it matches.
fn take_if_matches(one_time: &Mutex<Option<AccessToken>>, shown: &str) -> bool {
    let mut token = lock_token(one_time);
    let is_match = token.as_ref().is_some_and(|token| token.matches(shown));
    is_match && token.take().is_some()
}

/// Passes read-only requests that address this server and come from its own page or from no page.
pub(crate) async fn check_origin(State(app): State<App>, request: Request, next: Next) -> Response {
    match refuse_foreign(&app.keys, request.method(), request.uri().path(), request.headers()) {
        Some(problem) => problem.into_response(),
        None => next.run(request).await,
    }
}

/// Passes requests that carry the token or the cookie.
pub(crate) async fn check_token(State(app): State<App>, mut request: Request, next: Next) -> Response {
    // A single-use token is accepted on one path only. A valid one grants what it grants, whether or not there is a
    // cookie.
    let by_address = request.uri().path() == SESSION_PATH && app.keys.redeem_ticket(request.headers());
    if by_address {
        request.extensions_mut().insert(AddressLogin);
    }
    if by_address || app.keys.is_authenticated(request.headers()) {
        if let Some(place) = request.extensions().get::<Arc<ConnectionGuard>>() {
            place.mark_authenticated();
        }
        return next.run(request).await;
    }
    ApiProblem::new(StatusCode::UNAUTHORIZED, "unauthorized", "the token of this server is missing or another one")
        .hint("runnerctl ui")
        .into_response()
}

/// Returns the token in the `Authorization` header.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ").map(str::trim)
}

/// Returns a refusal if a request does not come from the server's own page.
fn refuse_foreign(keys: &AccessKeys, method: &Method, path: &str, headers: &HeaderMap) -> Option<Response> {
    let is_steering = keys.can_steer() && *method == Method::POST && is_steer_path(path);
    if !is_steering && !matches!(*method, Method::GET | Method::HEAD) {
        let problem =
            ApiProblem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "only GET and HEAD are answered");
        return Some(([(ALLOW, "GET, HEAD")], problem).into_response());
    }
    let forbidden = |message: &str| Some(ApiProblem::new(StatusCode::FORBIDDEN, "forbidden", message).into_response());
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok()).filter(|host| keys.is_own_host(host));
    let Some(host) = host.filter(|_| hosts.next().is_none()) else {
        return forbidden("the request is for another host: open the address as it was printed");
    };
    if headers.get_all(ORIGIN).iter().any(|origin| *origin != *format!("http://{host}")) {
        return forbidden("the request comes from another page");
    }
    // A browser names the originating page in each request that may change something.
    if is_steering && headers.get_all(ORIGIN).iter().count() != 1 {
        return forbidden("the request does not say from which page it comes");
    }
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("unreadable"));
    let is_own = matches!(text(FETCH_SITE), None | Some("same-origin" | "none"));
    let is_page = !requires_auth(path) && text(FETCH_MODE) == Some("navigate");
    if is_own || is_page { None } else { forbidden("the request comes from another page") }
}

/// Whether a path is a steering path, for any repository.
fn is_steer_path(path: &str) -> bool {
    path.strip_prefix("/api/repos/")
        .and_then(|rest| rest.strip_suffix(STEER_SUFFIX))
        .is_some_and(|repo| !repo.contains('/'))
}

fn requires_auth(path: &str) -> bool {
    path.starts_with("/api") || path.starts_with("/events")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> AccessKeys {
        AccessKeys::new(4747, false).expect("random numbers")
    }

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            (HeaderName::from_bytes(name.as_bytes()).expect("a name"), value.parse().expect("a value"))
        };
        pairs.iter().map(pair).collect()
    }

    fn refused_status(path: &str, pairs: &[(&str, &str)]) -> Option<StatusCode> {
        refuse_foreign(&keys(), &Method::GET, path, &headers(pairs)).map(|response| response.status())
    }

    #[test]
    fn a_token_has_256_bits_and_no_two_are_equal() {
        let one = AccessToken::random().unwrap();
        let other = AccessToken::random().unwrap();
        assert_eq!(one.as_str().len(), 43);
        assert!(
            one.matches(one.as_str())
                && !one.matches(other.as_str())
                && !one.matches("")
                && !one.matches(&one.as_str()[..42])
        );
    }

    #[test]
    fn a_token_is_not_in_what_is_logged() {
        let keys = keys();
        assert!(!format!("{keys:?}").contains(keys.token.as_str()));
    }

    #[test]
    fn only_names_of_loopback_with_this_port_are_this_server() {
        let keys = keys();
        for host in ["127.0.0.1:4747", "localhost:4747", "[::1]:4747"] {
            assert!(keys.is_own_host(host), "{host}");
        }
        let others = [
            "127.0.0.1",
            "localhost",
            "127.0.0.1:80",
            "localhost:4748",
            "evil.example:4747",
            "localhost.evil.example:4747",
            "127.0.0.1.evil.example:4747",
            "localhost:4747.evil.example",
            "localhost:04747",
            "0.0.0.0:4747",
            "[::]:4747",
            "",
        ];
        for host in others {
            assert!(!keys.is_own_host(host), "{host}");
        }
        assert!(AccessKeys { port: 80, ..keys }.is_own_host("localhost"));
    }

    #[test]
    fn a_name_that_somebody_else_leads_here_is_refused() {
        assert_eq!(refused_status("/", &[("host", "evil.example:4747")]), Some(StatusCode::FORBIDDEN));
        assert_eq!(refused_status("/", &[]), Some(StatusCode::FORBIDDEN));
        assert_eq!(
            refused_status("/", &[("host", "localhost:4747"), ("host", "localhost:4747")]),
            Some(StatusCode::FORBIDDEN)
        );
        assert_eq!(refused_status("/", &[("host", "localhost:4747")]), None);
    }

    #[test]
    fn a_page_from_elsewhere_may_lead_to_the_page_and_read_nothing() {
        let host = ("host", "localhost:4747");
        let from = |path, site, mode| refused_status(path, &[host, ("sec-fetch-site", site), ("sec-fetch-mode", mode)]);
        assert_eq!(from("/", "cross-site", "navigate"), None);
        assert_eq!(from("/api/repos", "cross-site", "navigate"), Some(StatusCode::FORBIDDEN));
        assert_eq!(from("/api/repos", "same-site", "cors"), Some(StatusCode::FORBIDDEN));
        assert_eq!(from("/events", "cross-site", "cors"), Some(StatusCode::FORBIDDEN));
        assert_eq!(from("/assets/a.js", "cross-site", "no-cors"), Some(StatusCode::FORBIDDEN));
        assert_eq!(from("/api/repos", "same-origin", "cors"), None);
        assert_eq!(from("/api/repos", "none", "navigate"), None);
    }

    #[test]
    fn an_origin_is_this_server_under_the_name_that_was_asked_for() {
        let from = |origin| refused_status("/api/repos", &[("host", "localhost:4747"), ("origin", origin)]);
        assert_eq!(from("http://localhost:4747"), None);
        for origin in ["null", "http://localhost:3000", "https://localhost:4747", "http://127.0.0.1:4747"] {
            assert_eq!(from(origin), Some(StatusCode::FORBIDDEN), "{origin}");
        }
    }

    #[test]
    fn a_ticket_is_good_for_one_session_and_for_nothing_else() {
        let keys = keys();
        let once = keys.url_once();
        let ticket = once.rsplit('=').next().expect("a ticket");
        let shown = headers(&[("authorization", &format!("Bearer {ticket}"))]);
        assert!(!keys.is_authenticated(&shown));
        assert!(keys.redeem_ticket(&shown) && !keys.redeem_ticket(&shown));
        assert_eq!(keys.url_once(), "");
    }

    #[test]
    fn a_printed_address_serves_once_too_and_is_another_one_then() {
        let keys = keys();
        let printed = keys.url();
        let shown = headers(&[("authorization", &format!("Bearer {}", printed.rsplit('=').next().expect("a token")))]);
        assert!(!keys.is_authenticated(&shown));
        assert!(keys.redeem_ticket(&shown) && !keys.redeem_ticket(&shown));
        assert!(!keys.url().is_empty() && keys.url() != printed);
        assert!(!keys.url().contains(keys.token()) && !printed.contains(keys.token()));
    }

    #[test]
    fn the_cookie_is_found_among_others() {
        let keys = keys();
        let pair = keys.cookie();
        let pair = pair.split(';').next().expect("a pair");
        assert!(keys.has_cookie(&headers(&[("cookie", &format!("a=b; {pair}; c=d"))])));
        assert!(!keys.has_cookie(&headers(&[("cookie", "runner_ui_4747=; runner_ui_4747")])));
        assert!(!keys.has_token(&headers(&[("authorization", &format!("Bearer {}", keys.session.as_str()))])));
        assert!(keys.has_token(&headers(&[("authorization", &format!("Bearer {}", keys.token.as_str()))])));
    }
}
