// How one person likes the console on this machine. Nothing about items or sessions is kept here.

export type Theme = 'system' | 'light' | 'dark'

class Preferences {
  theme = $state.raw<Theme>('system')
  /** Shortcuts of a single key get in the way of some; they can be turned off. */
  hasShortcuts = $state.raw(true)

  start(): void {
    const theme = localStorage.getItem('pilot.theme')
    if (theme === 'light' || theme === 'dark') this.theme = theme
    this.hasShortcuts = localStorage.getItem('pilot.shortcuts') !== 'off'
    this.#apply()
  }

  setTheme(theme: Theme): void {
    this.theme = theme
    if (theme === 'system') localStorage.removeItem('pilot.theme')
    else localStorage.setItem('pilot.theme', theme)
    this.#apply()
  }

  setShortcuts(on: boolean): void {
    this.hasShortcuts = on
    if (on) localStorage.removeItem('pilot.shortcuts')
    else localStorage.setItem('pilot.shortcuts', 'off')
  }

  get isDark(): boolean {
    return this.theme === 'dark' || (this.theme === 'system' && matchMedia('(prefers-color-scheme: dark)').matches)
  }

  #apply(): void {
    if (this.theme === 'system') delete document.documentElement.dataset.theme
    else document.documentElement.dataset.theme = this.theme
  }
}

export const preferences = new Preferences()
