import { defineConfig } from 'vitest/config';

// Tests in a real browser, of the page as it was built: `npm run build` comes first.
export default defineConfig({
  test: {
    include: ['e2e/*.test.mjs'],
    environment: 'node',
    testTimeout: 120_000,
    hookTimeout: 60_000,
    fileParallelism: false,
  },
});
