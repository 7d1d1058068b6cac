//! API errors: why a request has no reply, with the HTTP status.

use std::error::Error;
use std::fmt;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use protocol::api::API_VERSION;
use protocol::client::{CallError, ConnectError};
use protocol::command::NextSteps;
use protocol::error::{ErrorData, ErrorKind};

use crate::body::to_json_text;
use crate::wire::{ErrorBody, ErrorReply};

/// An error reply to a page.
#[derive(Debug, Clone)]
pub(crate) struct ApiProblem {
    status: StatusCode,
    body: ErrorBody,
}

impl ApiProblem {
    /// Creates an error from its status, code and message.
    pub(crate) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        Self { status, body: error_body(code, message.into(), NextSteps::default()) }
    }

    /// Creates a 404: it does not exist.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorKind::NotFound.as_str(), message)
    }

    /// Creates the error of an invalid id, number or parameter.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorKind::InvalidRequest.as_str(), message)
    }

    /// Creates the error of a malformed file.
    pub(crate) fn invalid_file(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, ErrorKind::InvalidFile.as_str(), message)
    }

    /// Creates the error of a system failure.
    pub(crate) fn fault(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, ErrorKind::Fault.as_str(), message)
    }

    /// Creates the error for when no daemon answers.
    pub(crate) fn daemon_away(as_of: Option<Timestamp>) -> Self {
        let mut problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "daemon_away", "no daemon answers")
            .hint("runnerctl daemon status");
        problem.body.as_of = as_of;
        problem
    }

    /// Creates the error for when no connection was attempted yet.
    pub(crate) fn daemon_untried() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "daemon_away", "no daemon has answered yet")
    }

    /// Creates the error of a failed connection. If versions differ, it says which side is older.
    pub(crate) fn daemon_unreachable(error: &ConnectError) -> Self {
        let (status, kind) = match error {
            ConnectError::ProtocolMismatch { .. } | ConnectError::DevelopmentBuild { .. } => {
                (StatusCode::BAD_GATEWAY, ErrorKind::ProtocolMismatch.as_str())
            }
            _ => (StatusCode::SERVICE_UNAVAILABLE, "daemon_away"),
        };
        let hint = match error {
            ConnectError::ProtocolMismatch { api_version, .. } if *api_version > API_VERSION => {
                Some("the web view is the older one: update runner-ui, then: runnerctl ui".to_owned())
            }
            _ => error.hint(),
        };
        let problem = Self::new(status, kind, error.to_string());
        match hint {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
    }

    /// Adds a suggestion of what to do next.
    #[must_use]
    pub(crate) fn hint(mut self, ways: impl Into<NextSteps>) -> Self {
        (self.body.hint, self.body.commands) = ways.into().into_parts();
        self
    }

    /// Whether the error says that it does not exist, as far as the daemon knows.
    pub(crate) fn is_not_found(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }
}

impl fmt::Display for ApiProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.body.message)
    }
}

impl From<ApiProblem> for ErrorReply {
    fn from(problem: ApiProblem) -> Self {
        Self { error: problem.body }
    }
}

/// Creates the error of a server that cannot start, from what it was doing.
pub fn startup_error(doing: &str, error: &dyn Error, hint: Option<&'static str>) -> ErrorReply {
    let ways = hint.map(NextSteps::from).unwrap_or_default();
    ErrorReply { error: error_body(ErrorKind::Fault.as_str(), format!("{doing}: {error}"), ways) }
}

fn error_body(code: &str, message: String, ways: NextSteps) -> ErrorBody {
    let (hint, commands) = ways.into_parts();
    ErrorBody { code: code.into(), message, hint, commands, as_of: None }
}

impl IntoResponse for ApiProblem {
    fn into_response(self) -> Response {
        let status = self.status;
        let text = to_json_text(&ErrorReply::from(self));
        (status, [(CONTENT_TYPE, "application/json")], text).into_response()
    }
}

impl From<ErrorData> for ApiProblem {
    fn from(error: ErrorData) -> Self {
        let message = std::iter::once(error.message).chain(error.causes).collect::<Vec<_>>().join(": ");
        let mut problem = Self::new(http_status(error.kind), error.kind.as_str(), message);
        (problem.body.hint, problem.body.commands) = (error.hint, error.commands);
        problem
    }
}

impl From<CallError> for ApiProblem {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused(data) => data.into(),
            CallError::Gone => Self::daemon_away(Some(Timestamp::now())),
            CallError::Timeout | CallError::Protocol(_) => {
                Self::new(StatusCode::BAD_GATEWAY, ErrorKind::Fault.as_str(), error.to_string())
            }
        }
    }
}

impl From<jsonrpsee::core::client::Error> for ApiProblem {
    fn from(error: jsonrpsee::core::client::Error) -> Self {
        CallError::from(error).into()
    }
}

fn http_status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::NotARepository | ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::InvalidRequest => StatusCode::BAD_REQUEST,
        ErrorKind::InsideIteration | ErrorKind::Unconfirmed | ErrorKind::Unsigned => StatusCode::FORBIDDEN,
        ErrorKind::InvalidFile
        | ErrorKind::DirtyTree
        | ErrorKind::IdentityMismatch
        | ErrorKind::MissingCommand
        | ErrorKind::LooseContainment
        | ErrorKind::WrongState
        | ErrorKind::Held => StatusCode::CONFLICT,
        ErrorKind::Draining | ErrorKind::Busy => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::ProtocolMismatch | ErrorKind::Fault | ErrorKind::Bug => StatusCode::BAD_GATEWAY,
    }
}

#[cfg(test)]
mod tests {
    use protocol::client::Address;

    use super::*;

    #[test]
    fn of_two_versions_the_older_side_is_the_one_to_update() {
        let hint = |api_version| {
            let at = Address::Socket("/run/s".into());
            let daemon_version = "9.9.9".to_owned();
            let error = ConnectError::ProtocolMismatch { at, daemon_version, api_version };
            let problem = ApiProblem::daemon_unreachable(&error);
            assert_eq!((problem.status, problem.body.code.as_str()), (StatusCode::BAD_GATEWAY, "protocol_mismatch"));
            problem.body.hint.expect("a hint")
        };
        assert!(hint(API_VERSION + 1).starts_with("the web view is the older one"));
        assert!(hint(API_VERSION - 1).starts_with("the daemon is the older one"));
    }
}
