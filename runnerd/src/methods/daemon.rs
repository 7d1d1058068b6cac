//! `daemon.*`: the daemon itself.

use std::path::Path;

use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::{API_VERSION, DaemonApiServer};
use protocol::error::{ErrorData, ErrorKind};
use protocol::path::WirePath;
use protocol::reply::{SigningKeyReply, VouchReply};
use protocol::request::{Handshake, LogFilter, SigningKeyParams, VouchParams};
use protocol::view::{DaemonView, MissingLevel, SleepView};
use runner_process::{SleepState, UnusedLevel};

use super::{Api, run_blocking};
use crate::startup::DaemonProgram;
use crate::state_dir::signing_key::{SigningKey, SigningKeyError};

#[async_trait]
impl DaemonApiServer for Api {
    async fn handshake(&self, params: Handshake) -> RpcResult<DaemonView> {
        tracing::debug!(client = params.client, version = params.version, "handshake");
        Ok(self.describe_daemon().await)
    }

    async fn info(&self) -> RpcResult<DaemonView> {
        Ok(self.describe_daemon().await)
    }

    async fn drain(&self) -> RpcResult<DaemonView> {
        let view = self.describe_daemon().await;
        self.events.publish_stopping();
        self.drain.cancel();
        Ok(DaemonView { draining: true, ..view })
    }

    async fn shutdown(&self) -> RpcResult<DaemonView> {
        let view = self.describe_daemon().await;
        self.events.publish_stopping();
        self.shutdown.cancel();
        Ok(view)
    }

    async fn log_filter(&self, params: LogFilter) -> RpcResult<DaemonView> {
        self.log_filter.set(&params.filter).map_err(|error| {
            ErrorData::new(ErrorKind::InvalidRequest, error.to_string())
                .caused_by(&error)
                .hint("directives have the form of RUST_LOG, e.g. info,runner_git=debug")
        })?;
        Ok(self.describe_daemon().await)
    }

    async fn vouch(&self, params: VouchParams) -> RpcResult<VouchReply> {
        let (callers, VouchParams { pids, method }) = (self.callers.clone(), params);
        let vouched =
            run_blocking(move || callers.check_callers(&pids, &method).map_or(Ok(VouchReply { method }), Err));
        Ok(vouched.await?)
    }

    async fn signing_key(&self, params: SigningKeyParams) -> RpcResult<SigningKeyReply> {
        let private_dir = self.state_dir.folder().to_owned();
        Ok(run_blocking(move || open_signing_key(&private_dir, params.make)).await?)
    }
}

fn open_signing_key(private_dir: &Path, make: bool) -> Result<SigningKeyReply, ErrorData> {
    let found = if make {
        Some(SigningKey::find_or_create(private_dir)?)
    } else {
        SigningKey::find(private_dir)?.map(|key| (key, false))
    };
    let Some((SigningKey { file, signer }, is_new)) = found else {
        return Err(ErrorData::new(ErrorKind::NotFound, "the runner has no key here")
            .hint("runnerctl daemon signing-key --make"));
    };
    Ok(SigningKeyReply { file: WirePath(file), signer, is_new })
}

impl From<SigningKeyError> for ErrorData {
    fn from(error: SigningKeyError) -> Self {
        let data = Self::new(ErrorKind::Fault, error.to_string()).caused_by(&error);
        match &error {
            SigningKeyError::Program { .. } => data.hint("install OpenSSH's client, so that PATH finds `ssh-keygen`"),
            SigningKeyError::InvalidPublicKey { path } => {
                let folder = path.parent().unwrap_or(path).display();
                data.hint(format!("move {folder} away, and have another key made"))
            }
            SigningKeyError::Io { .. } => data,
        }
    }
}

impl Api {
    async fn describe_daemon(&self) -> DaemonView {
        let workers = self.registry.list().await;
        let running = workers.iter().filter(|worker| worker.is_driving()).count();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        DaemonView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            api_version: API_VERSION,
            pid: std::process::id(),
            started_at: self.started_at,
            socket: WirePath(self.paths.socket.clone()),
            state_folder: WirePath(self.paths.state.clone()),
            containment: self.capabilities.level(),
            containment_missing: self.capabilities.unused_levels().iter().map(missing_level).collect(),
            repositories: count(workers.len()),
            running: count(running),
            draining: self.drain.is_cancelled(),
            log_filter: self.log_filter.current(),
            log: self.log.clone().map(WirePath),
            program: self.program.as_ref().map(|program| WirePath(program.path().to_owned())),
            outdated: self.program.as_ref().is_some_and(DaemonProgram::is_outdated),
            socket_passed: self.socket_passed,
            sleep: sleep_view(self.inhibitor.state()),
        }
    }
}

fn sleep_view(sleep: SleepState) -> SleepView {
    let allowed = |why: &str| SleepView { inhibited: false, why: Some(why.to_owned()) };
    match sleep {
        SleepState::Inhibited => SleepView { inhibited: true, why: None },
        SleepState::Allowed => allowed("no run is active"),
        SleepState::NotManaged => allowed("inhibit_sleep is false"),
        SleepState::Failed { why } => allowed(&why),
    }
}

fn missing_level(missing: &UnusedLevel) -> MissingLevel {
    MissingLevel { level: missing.level, why: missing.why.clone(), raise: missing.hint.clone() }
}
