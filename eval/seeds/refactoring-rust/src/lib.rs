//! Lines of delimited text.

/// Returns a line of CSV.
pub fn csv_line(fields: &[&str]) -> String {
    let mut line = String::new();
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            line.push(',');
        }
        if field.contains(&[',', '"', '\n', '\r'][..]) {
            line.push('"');
            line.push_str(&field.replace('"', r#""""#));
            line.push('"');
        } else {
            line.push_str(field);
        }
    }
    line
}

/// Returns a line with semicolons, as some spreadsheets want it.
pub fn semicolon_line(fields: &[&str]) -> String {
    let mut line = String::new();
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            line.push(';');
        }
        if field.contains(&[';', '"', '\n'][..]) {
            line.push('"');
            line.push_str(&field.replace('"', r#""""#));
            line.push('"');
        } else {
            line.push_str(field);
        }
    }
    line
}

/// Returns a line with tabs.
pub fn tab_line(fields: &[&str]) -> String {
    let mut parts = Vec::new();
    for field in fields {
        if field.contains(&['\t', '"'][..]) {
            parts.push(format!("\"{}\"", field.replace('"', r#""""#)));
        } else {
            parts.push(field.to_string());
        }
    }
    parts.join("\t")
}
