//! `review.*`: a person's review of a finished node.

use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::ReviewApiServer;
use protocol::error::{ErrorData, ErrorKind};
use protocol::reply::ReviewReply;
use protocol::request::AtRun;
use protocol::review::{ApproveParams, PendingReview, RejectParams};
use runner_core::message::ReviewSignature;
use runner_core::run::approval::Decision;

use super::Api;
use crate::worker::WorkerMessage;

#[async_trait]
impl ReviewApiServer for Api {
    async fn pending_review(&self, params: AtRun) -> RpcResult<PendingReview> {
        let AtRun { path, run } = self.resolve_exact_run(params, "approve").await?;
        let (_, worker) = self.find_worker(path.as_path()).await?;
        Ok(worker.send_request(|reply| WorkerMessage::PendingReview { run, reply }).await?)
    }

    async fn approve(&self, params: ApproveParams) -> RpcResult<ReviewReply> {
        Ok(self.submit_decision(params.at, params.iteration, Decision::Approve, params.signature).await?)
    }

    async fn reject(&self, params: RejectParams) -> RpcResult<ReviewReply> {
        let decision = Decision::Reject { reasons: params.reason };
        Ok(self.submit_decision(params.at, params.iteration, decision, params.signature).await?)
    }
}

impl Api {
    async fn submit_decision(
        &self,
        at: AtRun,
        iter: u32,
        decision: Decision,
        signature: Option<String>,
    ) -> Result<ReviewReply, ErrorData> {
        let command = if decision == Decision::Approve { "approve" } else { "reject" };
        let signature = signature.map(|text| text.parse::<ReviewSignature>()).transpose().map_err(|malformed| {
            ErrorData::new(ErrorKind::InvalidRequest, format!("malformed value of `signature`: {malformed}"))
        })?;
        let AtRun { path, run } = self.resolve_exact_run(at, command).await?;
        let (_, worker) = self.find_worker(path.as_path()).await?;
        worker.send_request(|reply| WorkerMessage::Review { run, decision, iter, signature, reply }).await
    }
}
