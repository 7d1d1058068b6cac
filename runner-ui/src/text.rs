//! Serves a text of a record, whole or a range, even while it grows. Bytes are passed on unchanged and read in chunks.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::stream;
use http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, IF_RANGE, RANGE,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use jsonrpsee::core::client::Error;
use protocol::api::IterationApiClient as _;
use protocol::client::Connection;
use protocol::request::{AtIteration, LogParams, LogStream};
use protocol::view::TextView;
use sha2::{Digest as _, Sha256};

use crate::problem::ApiProblem;
use crate::range::{ByteRange, parse_range};

const SIZE: HeaderName = HeaderName::from_static("x-runner-size");
const COMPLETE: HeaderName = HeaderName::from_static("x-runner-complete");
/// An offset beyond the end of any text: reading there returns only the size.
const PAST_END: u64 = 1 << 40;
/// Bytes that are read from a file at once.
const CHUNK_BYTES: u64 = 256 * 1024;

/// A text and its current size.
#[derive(Debug)]
pub(crate) struct RecordText {
    size: u64,
    is_complete: bool,
    source: TextSource,
}

/// The bytes at both ends of a text; a complete text is all head.
#[derive(Debug)]
pub(crate) struct TextEnds {
    pub(crate) head: Vec<u8>,
    pub(crate) tail: Vec<u8>,
    /// Size of the whole text.
    pub(crate) size: u64,
}

/// Where its bytes come from.
#[derive(Debug, Clone)]
enum TextSource {
    Daemon(Arc<Connection>, LogParams),
    File(Arc<File>),
}

impl RecordText {
    /// Opens a text through the daemon.
    pub(crate) async fn from_daemon(
        connection: Arc<Connection>,
        at: AtIteration,
        stream: LogStream,
    ) -> Result<Self, ApiProblem> {
        let params = LogParams { at, stream, offset: PAST_END, raw: true };
        let TextView { size, complete, .. } = connection.client().log(params.clone()).await?;
        Ok(Self { size: size.unwrap_or(0), is_complete: complete, source: TextSource::Daemon(connection, params) })
    }

    /// Opens a file that is no longer written to.
    pub(crate) fn from_file(file: File) -> io::Result<Self> {
        Ok(Self { size: file.metadata()?.len(), is_complete: true, source: TextSource::File(Arc::new(file)) })
    }

    /// Reads at most `limit` bytes: everything if it fits, else the beginning and the end.
    pub(crate) async fn read_ends(&self, limit: u64) -> io::Result<TextEnds> {
        if self.size <= limit {
            return Ok(TextEnds { head: self.read_range(0, self.size).await?, tail: Vec::new(), size: self.size });
        }
        let half = limit / 2;
        let head = self.read_range(0, half).await?;
        let tail = self.read_range(self.size - half, self.size).await?;
        Ok(TextEnds { head, tail, size: self.size })
    }

    /// Reads the bytes from `first` up to, excluding, `end`.
    async fn read_range(&self, first: u64, end: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut offset = first;
        while offset < end {
            let chunk = self.source.read(offset, end - offset).await?;
            if chunk.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let length = chunk.len().min(usize::try_from(end - offset).unwrap_or(usize::MAX));
            bytes.extend_from_slice(&chunk[..length]);
            offset += length as u64;
        }
        Ok(bytes)
    }

    /// Answers a request for the text.
    pub(crate) fn into_reply(self, path: &str, headers: &HeaderMap) -> Response {
        let tag = self.etag(path);
        let mut headers_out = HeaderMap::new();
        headers_out.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers_out.insert(SIZE, self.size.into());
        headers_out.insert(COMPLETE, HeaderValue::from_static(if self.is_complete { "true" } else { "false" }));
        headers_out.extend(tag.clone().map(|tag| (ETAG, tag)));
        if tag.as_ref().is_some_and(|tag| headers.get_all(IF_NONE_MATCH).iter().any(|known| known == tag)) {
            return (StatusCode::NOT_MODIFIED, headers_out).into_response();
        }
        // A range requested of a different version of the text must be ignored.
        let is_same = headers.get(IF_RANGE).is_none_or(|known| Some(known) == tag.as_ref());
        let range = headers.get(RANGE).filter(|_| is_same).and_then(|range| range.to_str().ok());
        match parse_range(range, self.size) {
            ByteRange::All => {
                let end = self.size;
                (headers_out, self.stream_range(0, end)).into_response()
            }
            ByteRange::Part { first, end } => {
                let content_range = format!("bytes {first}-{}/{}", end - 1, self.size);
                (
                    StatusCode::PARTIAL_CONTENT,
                    [(CONTENT_RANGE, content_range)],
                    headers_out,
                    self.stream_range(first, end),
                )
                    .into_response()
            }
            ByteRange::Unsatisfiable => {
                let message = "there is nothing in that range";
                let problem = ApiProblem::new(StatusCode::RANGE_NOT_SATISFIABLE, "range_not_satisfiable", message);
                ([(CONTENT_RANGE, format!("bytes */{}", self.size))], headers_out, problem).into_response()
            }
        }
    }

    /// Returns the entity tag; `None` while the text grows.
    fn etag(&self, path: &str) -> Option<HeaderValue> {
        let digest = Sha256::digest(format!("{path} {}", self.size));
        HeaderValue::from_str(&format!("\"{}\"", STANDARD.encode(digest))).ok().filter(|_| self.is_complete)
    }

    /// Streams the bytes from `first` up to, excluding, `end`.
    fn stream_range(self, first: u64, end: u64) -> Response {
        let chunks = stream::try_unfold((self.source, first), move |(from, at)| async move {
            if at >= end {
                return Ok::<_, io::Error>(None);
            }
            let mut chunk = from.read(at, end - at).await?;
            chunk.truncate(usize::try_from(end - at).unwrap_or(usize::MAX));
            if chunk.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let next = at + chunk.len() as u64;
            Ok(Some((chunk, (from, next))))
        });
        let headers_out = [
            (CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")),
            (CONTENT_LENGTH, (end - first).into()),
        ];
        (headers_out, Body::from_stream(chunks)).into_response()
    }
}

impl TextSource {
    /// Reads a chunk at an offset; empty at the end.
    async fn read(&self, at: u64, limit: u64) -> io::Result<Bytes> {
        match self {
            Self::Daemon(connection, params) => {
                let params = LogParams { offset: at, ..params.clone() };
                let piece = connection.client().log(params).await.map_err(|error: Error| io::Error::other(error))?;
                STANDARD.decode(piece.text).map(Bytes::from).map_err(io::Error::other)
            }
            Self::File(file) => {
                let file = Arc::clone(file);
                let read = move || {
                    let mut piece = vec![0; usize::try_from(limit.min(CHUNK_BYTES)).unwrap_or(usize::MAX)];
                    let count = file.read_at(&mut piece, at)?;
                    piece.truncate(count);
                    Ok(Bytes::from(piece))
                };
                tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?
            }
        }
    }
}
