//! `note.*`: notes from people to future sessions.

use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::NoteApiServer;
use protocol::reply::ChangeReply;
use protocol::request::NoteParams;
use runner_core::files::change::ChangeRequest;

use super::Api;

#[async_trait]
impl NoteApiServer for Api {
    async fn add_note(&self, params: NoteParams) -> RpcResult<ChangeReply> {
        let note = ChangeRequest::Note { id: String::new(), text: params.text };
        Ok(self.submit_change(params.at, note, None).await?)
    }
}
