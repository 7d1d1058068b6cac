// Several machines, each with a page: one is shown, and what there is on the others stands above it.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launch } from './browser.mjs';
import { accessible, NARROW, open, overflows, WIDE } from './page.mjs';
import { within } from './standin.mjs';
import { morning, small } from './worlds.mjs';

let browser;
beforeAll(async () => void (browser = await launch()));
afterAll(() => browser?.close());

const hosts = ['ssh://ada@build.example.org:2222', 'ssh://gpu', 'ssh://slow'];

/** Three machines, of which the last one does not answer. */
function fleet() {
  const of = (world, at) => ({ ...world, health: { ...world.health, host: hosts[at], hosts } });
  const gone = { ...of(small(), 2), down: true };
  return { ...of(small(), 0), others: [of(morning(), 1), gone] };
}

test.each([WIDE, NARROW])('one machine is shown, and the others are told, %o', async (viewport) => {
  await within(fleet(), async ({ url }) => {
    const { page, context, complaints } = await open(browser, url, { viewport });
    const machines = page.getByRole('navigation', { name: 'Machines' });
    await machines.getByRole('link', { name: /gpu .*held/ }).waitFor();
    await machines.getByRole('link', { name: /slow .*no answer/ }).waitFor();
    const here = machines.locator('[aria-current=page]');
    expect(await here.textContent()).toContain('ada@build.example.org:2222');
    await accessible(page, 'machines');
    expect(await overflows(page)).toBe(false);
    await machines.getByRole('link', { name: /gpu/ }).click();
    await page.getByRole('heading', { name: 'Needs you' }).waitFor();
    expect(new URL(page.url()).pathname).toBe('/m/1');
    expect(await here.textContent()).toContain('gpu');
    const offered = page.locator('main .command code');
    // On a phone each is a line, without its commands.
    await page
      .locator(viewport === WIDE ? 'main .command code' : '.rows')
      .first()
      .waitFor();
    for (const line of await offered.allTextContents())
      expect(line).toMatch(/^(runnerctl --host ssh:\/\/gpu |ssh -t gpu 'git )/);
    await machines.getByRole('link', { name: /ada@/ }).click();
    await page.waitForURL(url);
    expect(complaints).toEqual([]);
    await context.close();
  });
});

test('a page of one machine says which, and has no list of them', async () => {
  const world = small();
  await within(
    { ...world, health: { ...world.health, host: 'ssh://gpu', hosts: ['ssh://gpu'] } },
    async ({ url }) => {
      const { page, context, complaints } = await open(browser, url);
      await page.getByRole('banner').getByText('ssh://gpu').waitFor();
      expect(await page.getByRole('navigation', { name: 'Machines' }).count()).toBe(0);
      expect(complaints).toEqual([]);
      await context.close();
    },
  );
});
