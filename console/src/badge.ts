// The number in the tab's icon. Drawn, because the content security policy allows no image that is written into an address
// as data; a drawn one is a blob, which it allows.

const SIZE = 64
let shown = 0
let url: string | null = null

/** `9+` is all that can be read at this size. */
export function badgeText(number: number): string {
  return number > 9 ? '9+' : String(number)
}

export async function showBadge(number: number): Promise<void> {
  const link = document.querySelector<HTMLLinkElement>('link[rel="icon"]')
  if (link === null || number === shown) return
  shown = number
  link.dataset.plain ??= link.href
  const plain = link.dataset.plain
  const drawn = number === 0 ? null : await draw(number).catch(() => null)
  // Another number came while this one was drawn.
  if (shown !== number) return
  if (url !== null) URL.revokeObjectURL(url)
  url = drawn === null ? null : URL.createObjectURL(drawn)
  link.type = url === null ? 'image/svg+xml' : 'image/png'
  link.href = url ?? plain
}

function draw(number: number): Promise<Blob | null> {
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = SIZE
  const pen = canvas.getContext('2d')
  if (pen === null) return Promise.resolve(null)
  pen.scale(SIZE / 32, SIZE / 32)
  pen.fillStyle = '#14532d'
  pen.beginPath()
  pen.roundRect(0, 0, 32, 32, 7)
  pen.fill()
  pen.strokeStyle = '#fff'
  pen.lineWidth = 1.6
  pen.stroke(new Path2D('M10 11h12M10 11l6 11 6-11'))
  for (const [x, y, colour] of [[10, 11, '#fff'], [22, 11, '#fff'], [16, 22, '#86efac']] as const) {
    pen.fillStyle = colour
    pen.beginPath()
    pen.arc(x, y, 3.5, 0, 7)
    pen.fill()
  }
  pen.fillStyle = '#c2410c'
  pen.beginPath()
  pen.arc(22, 22, 10, 0, 7)
  pen.fill()
  pen.fillStyle = '#fff'
  pen.font = '700 13px sans-serif'
  pen.textAlign = 'center'
  pen.textBaseline = 'middle'
  pen.fillText(badgeText(number), 22, 22.8)
  return new Promise((resolve) => canvas.toBlob(resolve, 'image/png'))
}
