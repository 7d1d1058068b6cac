//! `review.*`: a person's word on a finished node.

use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::ReviewApiServer;
use protocol::error::ErrorData;
use protocol::reply::ReviewReply;
use protocol::request::{AtRun, RejectParams};
use runner_core::approval::Decision;

use super::Api;
use crate::worker::Message;

#[async_trait]
impl ReviewApiServer for Api {
    async fn approve(&self, params: AtRun) -> RpcResult<ReviewReply> {
        Ok(self.decide(params, Decision::Approve).await?)
    }

    async fn reject(&self, params: RejectParams) -> RpcResult<ReviewReply> {
        Ok(self.decide(params.at, Decision::Reject { reasons: params.reason }).await?)
    }
}

impl Api {
    async fn decide(&self, AtRun { path, run }: AtRun, decision: Decision) -> Result<ReviewReply, ErrorData> {
        let command = if decision == Decision::Approve { "approve" } else { "reject" };
        let AtRun { path, run } = self.meant(AtRun { path, run }, command).await?;
        let (_, worker) = self.worker(path.as_path()).await?;
        worker.ask(|reply| Message::Review { run, decision, reply }).await
    }
}
