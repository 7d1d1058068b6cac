// Opens the page in a browser and watches it: whatever it complains of fails the test that asked.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'vitest';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
export const WIDE = { width: 1440, height: 900 };
export const NARROW = { width: 390, height: 844 };

/** Opens an address; `complaints` are errors of the page and of its console. */
export async function open(browser, url, { viewport = WIDE, colorScheme = 'light' } = {}) {
  const context = await browser.newContext({ viewport, colorScheme, reducedMotion: 'reduce' });
  const page = await context.newPage();
  const complaints = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on(
    'console',
    (message) => message.type() === 'error' && !isExpected(message.text()) && complaints.push(message.text()),
  );
  page.on('dialog', (dialog) => (complaints.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
  await page.goto(url, { waitUntil: 'domcontentloaded' });
  return { page, context, complaints };
}

/** A text that is not there, and a server that is gone, are told in the page. */
const isExpected = (text) =>
  /Failed to load resource: (the server responded with a status of (404|409|416|503)|net::ERR_(CONNECTION|EMPTY|INCOMPLETE|FAILED))/.test(
    text,
  );

/** Looks for what keeps people out; the rules are WCAG 2.2 AA and axe's own. */
export async function accessible(page, what) {
  // Beside the page, where its rules for scripts do not hold.
  const session = await page.context().newCDPSession(page);
  const { result } = await evaluate(
    session,
    `${axe}; axe.run(document, { resultTypes: ['violations'] }).then((r) => JSON.stringify(r.violations.map((v) => ({ id: v.id, help: v.help, nodes: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + ' ' + (n.any[0]?.message ?? '')) }))))`,
  );
  await session.detach();
  expect(JSON.parse(result.value), what).toEqual([]);
}

const evaluate = (session, expression) =>
  session.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });

/** Whether the page is wider than the window. */
export const overflows = (page) =>
  page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
