//! The page: the files of `web/dist`, embedded into the program.

use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, StatusCode, Uri};
use rust_embed::{EmbeddedFile, RustEmbed};

use crate::problem::ApiProblem;

#[derive(RustEmbed)]
#[folder = "web/dist"]
struct EmbeddedPage;

/// Returns names and contents of all embedded files.
pub fn embedded_files() -> impl Iterator<Item = (String, Vec<u8>)> {
    EmbeddedPage::iter().filter_map(|name| Some((name.to_string(), EmbeddedPage::get(&name)?.data.into_owned())))
}

/// Serves a file of the page, or the page itself for its client-side routes.
pub(crate) async fn serve_asset(uri: Uri, headers: HeaderMap) -> Response {
    let path = uri.path().trim_start_matches('/');
    let path = if is_page_route(path) { "index.html" } else { path };
    match EmbeddedPage::get(path) {
        Some(file) => file_response(path, file, &headers),
        None => ApiProblem::not_found("there is no such page").into_response(),
    }
}

/// Whether a path is a client-side route of the page.
fn is_page_route(path: &str) -> bool {
    path.is_empty() || path == "r" || path.starts_with("r/")
}

fn file_response(path: &str, file: EmbeddedFile, headers: &HeaderMap) -> Response {
    let tag = format!("\"{}\"", STANDARD.encode(file.metadata.sha256_hash()));
    // Files in this folder have their digest in their name.
    let is_named_by_content = path.starts_with("assets/");
    let cache_control = if is_named_by_content { "public, max-age=31536000, immutable" } else { "no-cache" };
    let is_known = headers.get_all(IF_NONE_MATCH).iter().any(|known| *known == *tag);
    let headers_out = [(ETAG, tag), (CACHE_CONTROL, cache_control.to_owned())];
    if is_known {
        return (StatusCode::NOT_MODIFIED, headers_out).into_response();
    }
    let kind = file.metadata.mimetype().to_owned();
    let kind = if kind.starts_with("text/") { format!("{kind}; charset=utf-8") } else { kind };
    (headers_out, [(CONTENT_TYPE, kind)], file.data).into_response()
}
