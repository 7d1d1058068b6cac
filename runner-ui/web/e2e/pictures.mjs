// Takes the pictures of the documents from real programs: `node e2e/pictures.mjs FOLDER`.
import { launch } from './browser.mjs';
import { night } from './night.mjs';
import { open } from './page.mjs';

const [folder] = process.argv.slice(2);
const SIZE = { width: 1280, height: 800 };
const browser = await launch();
// A folder whose name may be seen.
const home = await night('/tmp/ada');
try {
  const address = await home.view();
  const take = async (name, go, options) => {
    const { page, context } = await open(browser, await address(), { viewport: SIZE, ...options });
    await page.getByRole('link', { name: 'calc' }).waitFor();
    await go(page);
    // Fonts and what moves.
    await page.evaluate(() => document.fonts.ready);
    await page.screenshot({ path: `${folder}/${name}.png` });
    await context.close();
  };
  await take('web-overview', async (page) => {
    await page.locator('.failing').waitFor();
    await page.getByText('Is a lower-case numeral').waitFor();
  });
  await take(
    'web-run',
    async (page) => {
      await page.getByRole('link', { name: 'importer' }).click();
      await page.locator('.live').getByRole('link').click();
      await page.getByText('Half a cent is rounded down').waitFor();
    },
    { colorScheme: 'dark' },
  );
  await take('web-timeline', async (page) => {
    await page.getByRole('link', { name: 'calc' }).click();
    await page.getByRole('link', { name: 'Timeline' }).click();
    await page.locator('.timeline .bar').first().waitFor();
  });
} finally {
  await browser.close();
  await home.end();
}
