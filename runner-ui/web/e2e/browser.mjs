// Starts the browser of the tests: Debian's Chromium, or the one that CHROMIUM names.
import { chromium } from 'playwright-core';

export function launch() {
  const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
  // Without a user namespace, as in a container, Chromium has no sandbox of its own; the pages are ours.
  const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'];
  return chromium.launch({ executablePath, args, headless: true });
}
