//! The exchange of versions, the first request on every connection.
//!
//! The reply is read field by field first: a daemon of another major version may describe itself
//! otherwise, and must still be told apart from one that is broken.

use jsonrpsee::core::ClientError;
use jsonrpsee::core::client::ClientT;
use jsonrpsee::rpc_params;
use serde_json::Value;
use tokio::time::timeout;

use super::dial::HANDSHAKE_TIMEOUT;
use super::{Address, CallError, ConnectError, ConnectOptions};
use crate::api::{API_MAJOR, API_MINOR};
use crate::request::Hello;
use crate::view::DaemonView;

/// Sends this client's version and checks the daemon's.
pub(super) async fn exchange(
    client: &impl ClientT,
    options: &ConnectOptions,
    at: &Address,
) -> Result<DaemonView, ConnectError> {
    let hello = Hello {
        client: options.client_name.clone(),
        version: options.version.clone(),
        api_major: API_MAJOR,
        api_minor: API_MINOR,
    };
    let failed = |reason: String| ConnectError::Handshake { at: at.clone(), reason };
    let request = client.request::<Value, _>("daemon.hello", rpc_params![hello]);
    let reply = timeout(HANDSHAKE_TIMEOUT, request).await.unwrap_or(Err(ClientError::RequestTimeout));
    let reply = reply.map_err(|error| match CallError::from(error) {
        CallError::Refused(refusal) => ConnectError::Refused(refusal),
        other => failed(other.to_string()),
    })?;
    check_version(&reply, at)?;
    serde_json::from_value(reply).map_err(|error| failed(format!("the first reply cannot be read: {error}")))
}

fn check_version(reply: &Value, at: &Address) -> Result<(), ConnectError> {
    let number = |key: &str| reply[key].as_u64().and_then(|number| u32::try_from(number).ok());
    let (Some(api_major), Some(api_minor)) = (number("api_major"), number("api_minor")) else {
        let reason = "the first reply names no API version".to_owned();
        return Err(ConnectError::Handshake { at: at.clone(), reason });
    };
    if api_major == API_MAJOR && (api_major, api_minor) >= (API_MAJOR, API_MINOR) {
        return Ok(());
    }
    let daemon_version = reply["version"].as_str().unwrap_or("unknown").to_owned();
    Err(ConnectError::ProtocolMismatch { at: at.clone(), daemon_version, api_major, api_minor })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(reply: &Value) -> Result<(), ConnectError> {
        check_version(reply, &Address::Socket("/run/r.sock".into()))
    }

    #[test]
    fn a_later_minor_version_of_the_daemon_is_fine() {
        assert!(check(&json!({"api_major": API_MAJOR, "api_minor": API_MINOR + 3})).is_ok());
    }

    #[test]
    fn another_major_version_is_a_mismatch_whatever_else_the_reply_holds() {
        let error = check(&json!({"api_major": API_MAJOR + 1, "api_minor": 0, "version": "7.0.0"})).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "this client speaks API {API_MAJOR}.{API_MINOR}, the daemon on /run/r.sock (runnerd 7.0.0) speaks {}.0",
                API_MAJOR + 1
            )
        );
    }

    #[test]
    fn a_reply_without_versions_is_no_daemon() {
        assert!(matches!(check(&json!("hello")), Err(ConnectError::Handshake { .. })));
    }
}
