//! Compresses replies for browsers that accept it: complete texts only. Streams and ranges stay as they are.

use std::io::{self, Write as _};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

/// Smallest size worth compressing, in bytes.
const MIN_BYTES: u64 = 1024;
/// Largest reply that is buffered for compression, in bytes.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// Compressible types, by prefix; plain text is excluded, because it is served in ranges.
const COMPRESSIBLE_TYPES: [&str; 5] = ["application/json", "text/html", "text/css", "text/javascript", "image/svg+xml"];

/// Compresses a reply if the request accepts it.
pub(crate) async fn compress_reply(request: Request, next: Next) -> Response {
    let is_wanted = *request.method() == Method::GET && accepts_gzip(request.headers());
    let response = next.run(request).await;
    if is_wanted && is_compressible(&response) { compress_body(response).await } else { response }
}

/// Whether the client accepts gzip.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let is_none = weight.trim().strip_prefix("q=").is_some_and(|weight| weight.trim_matches(['0', '.']).is_empty());
        name.trim().eq_ignore_ascii_case("gzip") && !is_none
    })
}

fn is_compressible(response: &Response) -> bool {
    let headers = response.headers();
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let size = axum::body::HttpBody::size_hint(response.body()).exact();
    response.status() == StatusCode::OK
        && !headers.contains_key(CONTENT_ENCODING)
        && COMPRESSIBLE_TYPES.iter().any(|known| kind.starts_with(known))
        && size.is_some_and(|size| size >= MIN_BYTES && usize::try_from(size).is_ok_and(|size| size <= MAX_BYTES))
}

async fn compress_body(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    // A body of known size is already complete in memory.
    let Ok(bytes) = to_bytes(body, MAX_BYTES).await else { return internal_error() };
    let Ok(Ok(small)) = tokio::task::spawn_blocking(move || gzip(&bytes)).await else { return internal_error() };
    parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.insert(CONTENT_LENGTH, small.len().into());
    Response::from_parts(parts, Body::from(small))
}

fn gzip(bytes: &Bytes) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn internal_error() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_taken_where_it_is_named_and_not_ruled_out() {
        let takes = |text: &str| {
            let pair = (ACCEPT_ENCODING, text.parse().expect("a value"));
            accepts_gzip(&HeaderMap::from_iter([pair]))
        };
        for text in ["gzip", "gzip, deflate, br, zstd", "br;q=1.0, GZIP;q=0.5"] {
            assert!(takes(text), "{text}");
        }
        for text in ["", "br", "identity", "gzip;q=0", "gzip; q=0.0", "x-gzip"] {
            assert!(!takes(text), "{text}");
        }
    }
}
