import { mount } from 'svelte'
import { settings } from './api'
import App from './App.svelte'
import { clock } from './clock.svelte'
import { preferences } from './preferences.svelte'
import { router } from './router.svelte'
import { session } from './session.svelte'
import './styles.css'

async function start(): Promise<void> {
  preferences.start()
  router.start()
  clock.start()
  // The default holds when the service cannot be asked: it is the strict one.
  await settings().then(
    ({ idle_minutes }) => (session.idleMinutes = idle_minutes),
    () => {},
  )
  await session.resume()
  mount(App, { target: document.querySelector('#console') ?? document.body })
}

void start()
