import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vitest/config'

// `npm run dev` shows the console of a running service: `pilot demo` listens here.
const service = process.env.PILOT_URL ?? 'http://127.0.0.1:7450'

export default defineConfig({
  plugins: [svelte()],
  build: {
    target: ['chrome123', 'firefox120', 'safari17.5'],
    // A file inlined as data: would need a hole in the content security policy.
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    // Screens that are loaded when they are wanted need no hints: what they share is there already.
    modulePreload: false,
    reportCompressedSize: false,
  },
  server: { proxy: { '/v1': service, '/console.json': service, '/docs': service } },
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
})
