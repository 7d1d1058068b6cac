//! Enforces an exact size limit on request heads: the read buffer is only bounded roughly.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, Method, StatusCode, Uri};

use crate::problem::ApiProblem;

/// Maximum bytes of a request's first line and headers.
pub(crate) const HEAD_BYTES: usize = 32 * 1024;
/// Bytes of the request line other than method and path.
const FIRST_LINE: usize = "  HTTP/1.1\r\n".len();
const LINE: usize = ": \r\n".len();

/// Passes requests whose head is not too large.
pub(crate) async fn check_head_size(request: Request, next: Next) -> Response {
    if head_size(request.method(), request.uri(), request.headers()) <= HEAD_BYTES {
        return next.run(request).await;
    }
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    ApiProblem::new(status, "invalid_request", "the head of the request is larger than 32 KiB").into_response()
}

fn head_size(method: &Method, uri: &Uri, headers: &HeaderMap) -> usize {
    let target = uri.path_and_query().map_or(0, |target| target.as_str().len());
    let lines = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + LINE);
    method.as_str().len() + target + FIRST_LINE + lines.sum::<usize>() + "\r\n".len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_counted_as_it_is_sent() {
        let headers = [("host", "a:1"), ("cookie", "x=y")];
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| (name.parse::<http::HeaderName>().expect("a name"), value.parse().expect("a value")))
            .collect();
        let sent = "GET /a?b=c HTTP/1.1\r\nhost: a:1\r\ncookie: x=y\r\n\r\n";
        let uri = "/a?b=c".parse().expect("a target");
        assert_eq!(head_size(&Method::GET, &uri, &headers), sent.len());
    }
}
