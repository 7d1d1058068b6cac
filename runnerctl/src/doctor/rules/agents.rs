//! Judges the configured agents.

use protocol::doctor::{AgentFacts, AgentFitness, RepositoryFacts};

use super::set_command;
use crate::detection::find_fit_agent;
use crate::doctor::{CheckLevel, DoctorCheck, QueryError};

/// Checks the configured agents.
pub(crate) fn check_configured_agents(
    agents: &Result<Vec<AgentFacts>, QueryError>,
    installed: &[AgentFacts],
    facts: &RepositoryFacts,
) -> Vec<DoctorCheck> {
    match agents {
        Ok(agents) => agents.iter().map(|agent| add_other_agent(check_agent(agent), agent, installed, facts)).collect(),
        Err(QueryError::Refused(why, hint)) => {
            vec![DoctorCheck { fix: hint.clone(), ..DoctorCheck::skipped("agents", why.clone()) }]
        }
        Err(error) => vec![error.to_check("agents")],
    }
}

/// Suggests an installed agent in the place of one that cannot work.
fn add_other_agent(
    check: DoctorCheck,
    agent: &AgentFacts,
    installed: &[AgentFacts],
    facts: &RepositoryFacts,
) -> DoctorCheck {
    let is_failed = check.level == CheckLevel::Fail && agent.section == "executor";
    let other = find_fit_agent(installed).filter(|(other, ..)| is_failed && other.kind != agent.kind);
    let Some((other, ..)) = other else { return check };
    let set = set_command(facts, &format!("executor.kind {}", other.kind));
    DoctorCheck { fix: check.fix.map(|fix| format!("{fix}; or: {set}")), ..check }
}

pub(super) fn check_agent(facts: &AgentFacts) -> DoctorCheck {
    let AgentFacts { section, kind, .. } = facts;
    match &facts.fitness {
        AgentFitness::Fit { version, tested, login } => {
            let login = match login {
                Some(true) => ", logged in",
                Some(false) => ", not logged in",
                None => "",
            };
            let version =
                version.as_ref().map_or("a command of your own".to_owned(), |version| format!("{kind} {version}"));
            let tested = tested.as_ref().map(|tested| format!("; the newest tested is {tested}")).unwrap_or_default();
            DoctorCheck::ok("agent", format!("[{section}] {version}{login}{tested}"))
        }
        AgentFitness::Unfit { what, fix } => DoctorCheck::fail("agent", format!("[{section}] {what}"), fix.clone()),
        AgentFitness::Unknown { why } => {
            DoctorCheck::warn("agent", format!("[{section}] {kind}: {why}"), format!("{kind} --version, to see why"))
        }
    }
}
