import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

// `npm run dev` passes on to a server that is named in RUNNER_UI, like http://127.0.0.1:4000.
const server = process.env.RUNNER_UI;
const proxy = server ? { '/api': server, '/events': server } : undefined;

export default defineConfig({
  plugins: [svelte()],
  // The page forbids inline scripts, styles and images to itself.
  build: { target: 'es2023', assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  server: proxy ? { proxy } : {},
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
});
