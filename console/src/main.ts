import { mount } from 'svelte'
import { settings, whoIsShown } from './api'
import App from './App.svelte'
import { clock } from './clock.svelte'
import { preferences } from './preferences.svelte'
import { takeReturn } from './provider'
import { router } from './router.svelte'
import { session } from './session.svelte'
import './styles.css'

async function start(): Promise<void> {
  // First of all: what a provider put into the address is not to stay there.
  const returned = takeReturn()
  preferences.start()
  router.start()
  clock.start()
  // The default holds when the service cannot be asked: it is the strict one.
  await settings().then(
    ({ idle_minutes, mechanism, sign_in }) => {
      session.idleMinutes = idle_minutes
      session.mechanism = mechanism
      session.provider = sign_in ?? null
    },
    () => {},
  )
  if (returned === null) await session.resume(whoIsShown)
  else session.returned = returned
  mount(App, { target: document.querySelector('#console') ?? document.body })
}

void start()
