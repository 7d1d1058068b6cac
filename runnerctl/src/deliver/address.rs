//! Parses a git remote URL into host and path of a repository.
//!
//! URLs may contain credentials, so they are never shown as they are.

use std::fmt::Write as _;

/// A repository on a forge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForgeRepo {
    /// Host in lower case, without port.
    pub(crate) host: String,
    /// Path without `.git`, such as `owner/name`.
    pub(crate) path: String,
}

impl ForgeRepo {
    /// Parses `https://host/owner/name.git`, `ssh://git@host:22/owner/name` and `git@host:owner/name`; `None` for a
    /// folder.
    pub(crate) fn from_url(url: &str) -> Option<Self> {
        let (authority, path) = match url.split_once("://") {
            Some((scheme, rest)) if ["https", "http", "ssh", "git"].contains(&scheme) => rest.split_once('/')?,
            Some(_) => return None,
            // A colon before any slash, as in `scp`.
            None => url.split_once(':').filter(|(host, _)| !host.contains('/'))?,
        };
        let host = authority.rsplit('@').next()?;
        let host = host.split(':').next().filter(|host| is_valid_segment(host))?.to_ascii_lowercase();
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path).to_owned();
        let is_valid = path.split('/').count() > 1 && path.split('/').all(is_valid_segment);
        let host = match host.as_str() {
            "ssh.github.com" | "www.github.com" => "github.com".to_owned(),
            "altssh.gitlab.com" => "gitlab.com".to_owned(),
            _ => host,
        };
        is_valid.then_some(Self { host, path })
    }

    /// Whether the host name suggests GitHub.
    pub(crate) fn is_github(&self) -> bool {
        self.host == "github.com" || self.host.ends_with(".ghe.com") || self.has_label("github")
    }

    /// Whether the host name suggests GitLab.
    pub(crate) fn is_gitlab(&self) -> bool {
        self.has_label("gitlab")
    }

    fn has_label(&self, name: &str) -> bool {
        self.host.split('.').any(|label| label.split('-').any(|part| part == name))
    }

    /// Returns the page for opening a request by hand, if the forge is known to have one.
    pub(crate) fn new_request_url(&self, head: &str, base: &str) -> Option<String> {
        let Self { host, path } = self;
        let head = percent_encode(head, "/");
        let base = percent_encode(base, "/");
        if self.is_github() {
            return Some(format!("https://{host}/{path}/compare/{base}...{head}?expand=1"));
        }
        self.is_gitlab().then(|| {
            let [source, target] = ["source", "target"].map(|end| format!("merge_request%5B{end}_branch%5D"));
            format!("https://{host}/{path}/-/merge_requests/new?{source}={head}&{target}={base}")
        })
    }
}

/// Whether text is a valid host or path component: nothing that an option or a shell would interpret.
fn is_valid_segment(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "-._~+".contains(c);
    !name.is_empty() && !name.starts_with('-') && name != "." && name != ".." && name.chars().all(is_plain)
}

/// Percent-encodes text for a URL; `plain` are characters kept in addition to letters and digits.
pub(crate) fn percent_encode(text: &str, plain: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || plain.as_bytes().contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_an_address_names_host_and_path() {
        for url in [
            "https://github.com/o/r.git",
            "https://me:token@github.com/o/r",
            "ssh://git@github.com:22/o/r.git/",
            "git@github.com:o/r.git",
            "ssh://git@ssh.github.com:443/o/r.git",
            "GitHub.com:o/r",
        ] {
            let address = ForgeRepo::from_url(url).expect(url);
            assert_eq!((address.host.as_str(), address.path.as_str()), ("github.com", "o/r"), "{url}");
        }
        let grouped = ForgeRepo::from_url("https://gitlab.example.org/a/b/c.git").expect("a group");
        assert_eq!((grouped.path.as_str(), grouped.is_gitlab(), grouped.is_github()), ("a/b/c", true, false));
    }

    #[test]
    fn what_is_no_repository_of_a_forge_has_no_address() {
        for url in [
            "/srv/git/r.git",
            "../r",
            "file:///srv/r.git",
            "https://github.com/r",
            "git@-x:o/r",
            "h:o/../r",
            "h:o/$(r)",
        ] {
            assert_eq!(ForgeRepo::from_url(url), None, "{url}");
        }
    }

    #[test]
    fn a_host_is_known_by_a_whole_word_of_its_name() {
        let host = |host: &str| ForgeRepo { host: host.into(), path: "o/r".into() };
        assert!(host("github.acme.org").is_github() && host("acme.ghe.com").is_github());
        assert!(host("my-gitlab.org").is_gitlab() && !host("notgithub.com").is_github());
    }

    #[test]
    fn the_page_for_a_person_names_both_branches() {
        let page =
            |url: &str| ForgeRepo::from_url(url).and_then(|address| address.new_request_url("deliver/a b", "main"));
        insta::assert_snapshot!(page("https://github.com/o/r").unwrap_or_default(), @"https://github.com/o/r/compare/main...deliver/a%20b?expand=1");
        insta::assert_snapshot!(page("git@gitlab.com:o/p/r.git").unwrap_or_default(), @"https://gitlab.com/o/p/r/-/merge_requests/new?merge_request%5Bsource_branch%5D=deliver/a%20b&merge_request%5Btarget_branch%5D=main");
        assert_eq!(page("https://codeberg.org/o/r"), None);
    }
}
