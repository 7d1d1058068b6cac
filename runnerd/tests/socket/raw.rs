//! A WebSocket client of a few lines that can also send what no regular client would.

use std::io;
use std::path::Path;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

const UPGRADE: &str = "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

/// A WebSocket that checks nothing.
pub(crate) struct RawSocket {
    pub(crate) stream: UnixStream,
}

impl RawSocket {
    pub(crate) async fn open(socket: &Path) -> Self {
        let mut stream = UnixStream::connect(socket).await.unwrap();
        stream.write_all(UPGRADE.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
        Self { stream }
    }

    pub(crate) async fn send(&mut self, text: impl AsRef<[u8]>) {
        self.stream.write_all(&frame(text.as_ref())).await.unwrap();
    }

    /// Sends a call with the id 1.
    pub(crate) async fn call(&mut self, method: &str) {
        self.send(request(method)).await;
    }

    /// Receives one message; `None` if the server has closed the connection.
    pub(crate) async fn receive(&mut self) -> Option<Value> {
        let (opcode, payload) = self.receive_frame().await.ok()?;
        (opcode == 1).then(|| serde_json::from_slice(&payload).unwrap())
    }

    async fn receive_frame(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let opcode = self.stream.read_u8().await? & 0x0f;
        let length = match self.stream.read_u8().await? & 0x7f {
            126 => u64::from(self.stream.read_u16().await?),
            127 => self.stream.read_u64().await?,
            short => u64::from(short),
        };
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.stream.read_exact(&mut payload).await?;
        Ok((opcode, payload))
    }

    /// Receives an error code.
    pub(crate) async fn receive_error(&mut self) -> i64 {
        let reply = self.receive().await.unwrap();
        reply["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {reply}"))
    }
}

pub(crate) fn request(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#)
}

/// Frames a text message, with a mask of zeros.
pub(crate) fn frame(payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x81];
    match payload.len() {
        length @ 0..126 => bytes.push(0x80 | u8::try_from(length).unwrap()),
        length @ 126..=0xffff => {
            bytes.push(0x80 | 0x7e);
            bytes.extend(u16::try_from(length).unwrap().to_be_bytes());
        }
        length => {
            bytes.push(0x80 | 0x7f);
            bytes.extend(u64::try_from(length).unwrap().to_be_bytes());
        }
    }
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}

/// Posts a body over HTTP and returns the complete response.
pub(crate) async fn post(socket: &Path, body: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // A response may arrive before the body is sent completely, for example if that is too large.
    let _ = stream.write_all(body).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}
