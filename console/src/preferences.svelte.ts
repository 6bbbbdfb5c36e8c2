// How one person likes the console on this machine. Nothing about items or sessions is kept here.
import { isLanguage, type Language } from './text'

export type Theme = 'system' | 'light' | 'dark'
export type Density = 'comfortable' | 'compact'
export type Zone = 'local' | 'utc'

const CHOICES = {
  theme: ['system', 'light', 'dark'],
  density: ['comfortable', 'compact'],
  zone: ['local', 'utc'],
} as const

class Preferences {
  theme = $state.raw<Theme>('system')
  density = $state.raw<Density>('comfortable')
  /** In which zone times are written. */
  zone = $state.raw<Zone>('local')
  /** The browser's own, unless another was chosen. */
  language = $state.raw<Language>('en')
  /** Shortcuts of a single key get in the way of some; they can be turned off. */
  hasShortcuts = $state.raw(true)
  /** Whether this person asked to be told of new work by the desktop. */
  hasNotices = $state.raw(false)
  /** Whether the tour was taken or skipped. */
  isGuided = $state.raw(false)

  start(): void {
    this.theme = chosen('theme') ?? 'system'
    this.density = chosen('density') ?? 'comfortable'
    this.zone = chosen('zone') ?? 'local'
    const spoken = [localStorage.getItem('pilot.language'), ...navigator.languages.map((tag) => tag.split('-')[0])]
    this.language = spoken.find(isLanguage) ?? 'en'
    this.hasShortcuts = localStorage.getItem('pilot.shortcuts') !== 'off'
    this.hasNotices = localStorage.getItem('pilot.notices') === 'on'
    this.isGuided = localStorage.getItem('pilot.guided') === 'on'
    this.#apply()
  }

  setTheme(theme: Theme): void {
    this.theme = theme
    keep('theme', theme, 'system')
    this.#apply()
  }

  setDensity(density: Density): void {
    this.density = density
    keep('density', density, 'comfortable')
    this.#apply()
  }

  setZone(zone: Zone): void {
    this.zone = zone
    keep('zone', zone, 'local')
  }

  /** Texts are looked up once, so the page is loaded again. What is being written is kept. */
  setLanguage(language: Language): void {
    localStorage.setItem('pilot.language', language)
    location.reload()
  }

  setShortcuts(on: boolean): void {
    this.hasShortcuts = on
    keep('shortcuts', on ? 'on' : 'off', 'on')
  }

  setNotices(on: boolean): void {
    this.hasNotices = on
    keep('notices', on ? 'on' : 'off', 'off')
  }

  setGuided(on: boolean): void {
    this.isGuided = on
    keep('guided', on ? 'on' : 'off', 'off')
  }

  get isDark(): boolean {
    return this.theme === 'dark' || (this.theme === 'system' && matchMedia('(prefers-color-scheme: dark)').matches)
  }

  #apply(): void {
    const { dataset } = document.documentElement
    if (this.theme === 'system') delete dataset.theme
    else dataset.theme = this.theme
    dataset.density = this.density
  }
}

function chosen<Name extends keyof typeof CHOICES>(name: Name): (typeof CHOICES)[Name][number] | undefined {
  const stored = localStorage.getItem(`pilot.${name}`)
  return (CHOICES[name] as readonly (typeof CHOICES)[Name][number][]).find((choice) => choice === stored)
}

function keep(name: string, value: string, usual: string): void {
  if (value === usual) localStorage.removeItem(`pilot.${name}`)
  else localStorage.setItem(`pilot.${name}`, value)
}

export const preferences = new Preferences()
