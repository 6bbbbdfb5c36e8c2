import { mount } from 'svelte'
import { settings, whoIsShown } from './api'
import App from './App.svelte'
import { clock } from './clock.svelte'
import { visible } from './hidden'
import { page } from './page.svelte'
import { preferences } from './preferences.svelte'
import { takeReturn } from './provider'
import { router } from './router.svelte'
import { session } from './session.svelte'
import { speak } from './text'
import { flushTyped } from './typed'
import './styles.css'

async function start(): Promise<void> {
  // First of all: what a provider put into the address is not to stay there.
  const returned = takeReturn()
  preferences.start()
  const speaking = speak(preferences.language)
  router.start()
  clock.start()
  addEventListener('pagehide', flushTyped)
  // The default holds when the service cannot be asked: it is the strict one.
  await settings().then(
    ({ idle_minutes, mechanism, sign_in, name, colour }) => {
      session.idleMinutes = idle_minutes
      session.mechanism = mechanism
      session.provider = sign_in ?? null
      page.name = visible(name ?? '')
      page.colour = colour ?? 'grey'
    },
    () => {},
  )
  if (returned === null) await session.resume(whoIsShown)
  else session.returned = returned
  await speaking
  mount(App, { target: document.querySelector('#console') ?? document.body })
}

void start()
