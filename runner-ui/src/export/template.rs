//! Assembles the exported file: the embedded page with its script and style inlined, and the data it shows. Does not
//! decide what that is.
//!
//! A browser that opens it sends no requests: the policy in its head admits exactly the two inlined texts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::bundle::to_embedded_json;
use crate::assets::embedded_files;
use crate::problem::ApiProblem;
use crate::wire::RunFile;

/// The parts of the embedded page.
#[derive(Debug)]
pub(super) struct PageTemplate {
    script: String,
    style: String,
}

impl PageTemplate {
    /// Splits the page embedded in this program.
    pub(super) fn from_embedded() -> Result<Self, ApiProblem> {
        Self::from_files(embedded_files())
    }

    fn from_files(files: impl Iterator<Item = (String, Vec<u8>)>) -> Result<Self, ApiProblem> {
        let mut scripts = Vec::new();
        let mut styles = Vec::new();
        for (name, bytes) in files {
            match name.rsplit_once('.').map(|(_, kind)| kind) {
                Some("js") => scripts.push(bytes),
                Some("css") => styles.push(bytes),
                _ => {}
            }
        }
        let (Some(script), Some(style)) = (single_text(scripts, "script"), single_text(styles, "style")) else {
            let message = "this build of runner-ui has no page that a file could hold";
            return Err(ApiProblem::not_found(message).hint("runnerctl ui"));
        };
        Ok(Self { script, style })
    }

    /// Renders the file that shows a run.
    pub(super) fn render(&self, run_file: &RunFile) -> String {
        let Self { script, style } = self;
        let script_digest = csp_digest(script);
        let style_digest = csp_digest(style);
        format!(
            r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '{script_digest}'; style-src '{style_digest}'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>runner</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript. What it shows is below as JSON, in the source of the page.</noscript>
<script type="application/json" id="run-file">{}</script>
<script type="module">{script}</script>
</body>
</html>
"#,
            to_embedded_json(run_file)
        )
    }
}

/// Returns the only text of its kind, if it can be inlined in an element of that name.
fn single_text(mut texts: Vec<Vec<u8>>, element: &str) -> Option<String> {
    let text = String::from_utf8(texts.pop()?).ok().filter(|_| texts.is_empty())?;
    let lower = text.to_ascii_lowercase();
    let ends_it = [format!("</{element}"), format!("<{element}"), "\r".into(), "\0".into()];
    (!ends_it.iter().any(|end| lower.contains(end.as_str()))).then_some(text)
}

/// Returns the hash of a text for a content security policy.
fn csp_digest(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_files(script: &str, style: &str) -> impl Iterator<Item = (String, Vec<u8>)> {
        [("assets/a.js".to_owned(), script.into()), ("assets/a.css".to_owned(), style.into())].into_iter()
    }

    #[test]
    fn the_policy_names_the_two_texts_and_lets_nothing_else_in() {
        let sheet = PageTemplate::from_files(page_files("go()", "p{}")).expect("a page");
        let run_file = RunFile {
            version: "1".into(),
            made_at: "2026-01-02T03:04:05Z".parse().expect("a time"),
            repo: "r".into(),
            run: "</script><script>pwned()</script>".into(),
            cuts: Vec::new(),
            without_texts: Vec::new(),
            replies: [].into(),
            texts: [].into(),
        };
        let html = sheet.render(&run_file);
        assert!(html.contains(&format!(
            "script-src '{}'; style-src '{}'; img-src data:;",
            csp_digest("go()"),
            csp_digest("p{}")
        )));
        assert_eq!(html.matches("<script").count(), 2, "{html}");
        assert!(!html.contains("http:") && !html.contains("https:") && !html.contains("src=\""));
    }

    #[test]
    fn a_page_that_cannot_stand_in_a_file_is_refused() {
        for (script, style) in [("'</SCRIPT>'", ""), ("'<script>'", ""), ("a\r\nb", ""), ("", "</style>")] {
            PageTemplate::from_files(page_files(script, style)).expect_err(script);
        }
        PageTemplate::from_files(std::iter::empty()).expect_err("a build without a page");
        PageTemplate::from_files(page_files("", "").chain(page_files("", ""))).expect_err("two scripts");
    }
}
