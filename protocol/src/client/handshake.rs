//! The exchange of versions, the first request on every connection.
//!
//! Parses the reply field by field: a daemon of another version may describe itself differently, and must still be
//! distinguished from a broken one. A daemon that does not know the request is a development build.

use jsonrpsee::core::ClientError;
use jsonrpsee::core::client::ClientT;
use jsonrpsee::rpc_params;
use jsonrpsee::types::error::METHOD_NOT_FOUND_CODE;
use serde_json::Value;
use tokio::time::timeout;

use super::dial::HANDSHAKE_TIMEOUT;
use super::{Address, CallError, ConnectError, ConnectOptions};
use crate::api::API_VERSION;
use crate::request::Handshake;
use crate::view::DaemonView;

/// Sends this client's version and checks the daemon's.
pub(super) async fn perform_handshake(
    client: &impl ClientT,
    options: &ConnectOptions,
    at: &Address,
) -> Result<DaemonView, ConnectError> {
    let handshake =
        Handshake { client: options.client_name.clone(), version: options.version.clone(), api_version: API_VERSION };
    let failed = |reason: String| ConnectError::Handshake { at: at.clone(), reason };
    let request = client.request::<Value, _>("daemon.handshake", rpc_params![handshake]);
    let reply = match timeout(HANDSHAKE_TIMEOUT, request).await.unwrap_or(Err(ClientError::RequestTimeout)) {
        Ok(reply) => reply,
        Err(ClientError::Call(error)) if error.code() == METHOD_NOT_FOUND_CODE => {
            return Err(ConnectError::DevelopmentBuild { at: at.clone(), pid: daemon_pid(client).await });
        }
        Err(error) => {
            return Err(match CallError::from(error) {
                CallError::Refused(refusal) => ConnectError::Refused(refusal),
                other => failed(other.to_string()),
            });
        }
    };
    check_version(&reply, at)?;
    serde_json::from_value(reply).map_err(|error| failed(format!("the first reply cannot be read: {error}")))
}

/// Asks the daemon for its process id. The socket's peer may be a service manager, which created the socket.
async fn daemon_pid(client: &impl ClientT) -> Option<u32> {
    let request = client.request::<Value, _>("daemon.info", rpc_params![]);
    let info = timeout(HANDSHAKE_TIMEOUT, request).await.ok()?.ok()?;
    // All other values identify no single process.
    info["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 1)
}

fn check_version(reply: &Value, at: &Address) -> Result<(), ConnectError> {
    let number = reply["api_version"].as_u64().and_then(|number| u32::try_from(number).ok());
    let Some(api_version) = number else {
        let reason = "the first reply names no API version".to_owned();
        return Err(ConnectError::Handshake { at: at.clone(), reason });
    };
    if api_version == API_VERSION {
        return Ok(());
    }
    let daemon_version = reply["version"].as_str().unwrap_or("unknown").to_owned();
    Err(ConnectError::ProtocolMismatch { at: at.clone(), daemon_version, api_version })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(reply: &Value) -> Result<(), ConnectError> {
        check_version(reply, &Address::Socket("/run/r.sock".into()))
    }

    #[test]
    fn another_version_is_a_mismatch_whatever_else_the_reply_holds() {
        assert!(check(&json!({"api_version": API_VERSION})).is_ok());
        let error = check(&json!({"api_version": API_VERSION + 1, "version": "7.0.0"})).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "this client speaks version {API_VERSION} of the API, the daemon on /run/r.sock (runnerd 7.0.0) speaks {}",
                API_VERSION + 1
            )
        );
    }

    #[test]
    fn a_reply_without_a_version_is_no_daemon() {
        assert!(matches!(check(&json!("hello")), Err(ConnectError::Handshake { .. })));
    }
}
