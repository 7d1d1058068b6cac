//! Detects the batch system that has started this process from its environment: Slurm, Kubernetes, one that declares
//! itself, or none.

use std::fs;

use protocol::paths::detect_job;
use runner_core::driver::Driver;

/// The variable by which an engine other than Slurm reports how often it has started the job before.
const ATTEMPT_VARIABLE: &str = "RUNNERD_ATTEMPT";

/// Returns the identity of this driver.
pub(super) fn detect_driver(variable: impl Fn(&str) -> Option<String>) -> Result<Driver, getrandom::Error> {
    let mut bytes = [0; size_of::<u64>()];
    getrandom::fill(&mut bytes)?;
    let nonce = format!("{:016x}", u64::from_be_bytes(bytes));
    Ok(driver_from_env(variable, &host_name(), &nonce))
}

fn driver_from_env(variable: impl Fn(&str) -> Option<String>, host: &str, nonce: &str) -> Driver {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    match detect_job(set) {
        Some((engine, job)) => {
            let attempt_variable = if engine == "slurm" { "SLURM_RESTART_COUNT" } else { ATTEMPT_VARIABLE };
            let attempt = set(attempt_variable).and_then(|count| count.parse().ok()).unwrap_or(0);
            Driver::new(engine, &job, attempt, host, nonce)
        }
        None => Driver::new("host", &format!("{host}-{}", std::process::id()), 0, host, nonce),
    }
}

fn host_name() -> String {
    let kernel_name = fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned());
    kernel_name.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe_driver(variables: &[(&str, &str)]) -> String {
        let value =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        driver_from_env(value, "n1", "0a").to_string()
    }

    #[test]
    fn the_engine_is_told_by_its_variables() {
        assert_eq!(describe_driver(&[("SLURM_JOB_ID", "7"), ("SLURM_RESTART_COUNT", "2")]), "slurm/7.2@n1 nonce=0a");
        assert_eq!(describe_driver(&[("SLURM_JOB_ID", "7")]), "slurm/7.0@n1 nonce=0a");
        let pod = [("KUBERNETES_SERVICE_HOST", "10.0.0.1"), ("HOSTNAME", "tidy-x2"), ("JOB_COMPLETION_INDEX", "3")];
        assert_eq!(describe_driver(&pod), "kubernetes/tidy-x2-3.0@n1 nonce=0a");
        let named = [("RUNNERD_JOB", "tidy"), ("RUNNERD_ATTEMPT", "2")];
        assert_eq!(describe_driver(&named), "command/tidy.2@n1 nonce=0a");
        assert_eq!(describe_driver(&[&pod[..2], &named].concat()), "kubernetes/tidy.2@n1 nonce=0a");
        assert_eq!(describe_driver(&[&named[..], &[("SLURM_JOB_ID", "7")]].concat()), "slurm/7.0@n1 nonce=0a");
        assert!(describe_driver(&[]).starts_with("host/n1-"));
    }
}
