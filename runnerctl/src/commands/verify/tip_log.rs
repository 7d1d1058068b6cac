//! `--tip-log`: checks that former branch tips are still on the branch, and records the current one for later checks.

use std::path::Path;

use protocol::api::VerifyApiClient as _;
use protocol::client::Connection;
use protocol::path::WirePath;
use protocol::tip_log;
use protocol::verify::{AuditReport, TipsParams};

use crate::failure::Failure;
use crate::text::measure::short_id;
use crate::text_file;
use crate::ui::Ui;

/// Maximum size of the file, in kibibytes.
const LIMIT_KIB: u64 = 64 << 10;

/// An append-only file of tips.
pub(super) struct TipLog<'a> {
    path: &'a Path,
    text: String,
}

impl<'a> TipLog<'a> {
    /// Reads the file. A missing file is not treated as empty: it may have been removed to hide something.
    pub(super) fn read(path: &'a Path) -> Result<Self, Failure> {
        let hint = format!("if this is the first time: touch {}", protocol::shell::quote(&path.display().to_string()));
        let text = text_file::read_text("tip log", path, LIMIT_KIB).map_err(|failure| failure.or_hint(hint))?;
        Ok(Self { path, text })
    }

    /// Adds a finding for each recorded commit that is not on the branch.
    pub(super) async fn add_lost_tips(
        &self,
        connection: &Connection,
        path: WirePath,
        report: &mut AuditReport,
    ) -> Result<(), Failure> {
        let tips = self.tips_of_run(&report.run)?.into_iter().map(str::to_owned).collect();
        let params = TipsParams { path, tip: report.tip.clone(), tips };
        report.findings.extend(connection.client().lost_tips(params).await?);
        Ok(())
    }

    /// Appends the tip of a valid branch.
    pub(super) fn append_tip(&self, ui: &Ui, report: &AuditReport) -> Result<(), Failure> {
        let known = self.tips_of_run(&report.run)?;
        let log = self.path.display();
        let is_new = known.last() != Some(&report.tip.as_str());
        if is_new {
            let failed = |error| Failure::io(format!("adding to the tip log {log}"), &error);
            tip_log::append_tip(self.path, &report.run, &report.tip).map_err(failed)?;
        }
        let tip = short_id(&report.tip);
        let summary = match (known.len(), is_new) {
            (0, _) => format!("run {} is in it from now on, at {tip}", report.run),
            (count, false) => format!("what run {} was at is on the branch: {count} in all", report.run),
            (count, true) => format!("what run {} was at is on the branch: {count} in all, and now {tip}", report.run),
        };
        ui.print_note(&format!("tip log {log}: {summary}\n"));
        Ok(())
    }

    fn tips_of_run(&self, run: &str) -> Result<Vec<&str>, Failure> {
        let to_failure = |error| Failure::usage(format!("{}: {error}", self.path.display()));
        tip_log::tips_of_run(&self.text, run).map_err(to_failure)
    }
}
