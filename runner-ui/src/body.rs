//! JSON replies.

use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use serde::Serialize;

/// A value sent as JSON.
#[derive(Debug)]
pub(crate) struct JsonReply<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for JsonReply<T> {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, "application/json")], to_json_text(&self.0)).into_response()
    }
}

/// Serializes a value as JSON on one line.
pub(crate) fn to_json_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("BUG: a reply has no form as JSON")
}
