import { learnShape } from './learn-shape.js'
import type { Plan } from './plan.js'
import { maxShapedBytes, type Reading, type ReplyShape } from './reply-shape.js'

/** Shapes per protocol: providers, and kinds of answers, that are asked at the same time. */
const maxShapes = 4
// To learn a shape costs what some dozen readings save: it is paid for by readings, and at first by what is given.
const maxCredit = 4
const creditOfFit = 1 / 16
const creditOfMiss = 1 / 64

interface Known {
  readonly shapes: ReplyShape[]
  credit: number
}

/** The shapes of the replies that one app got lately, the newest first. Keeps of a reply its keys, and the names that it told. */
export class ShapeMemory {
  private readonly known = new Map<Plan, Known>()

  /** Reads a whole reply, null where it has no known shape. */
  read (plan: Plan, reply: Buffer): Reading | null {
    if (reply.length > maxShapedBytes) return null
    const known = this.of(plan)
    const text = reply.toString('latin1')
    for (const shape of known.shapes) {
      const reading = shape.read(reply, text)
      if (reading === null) continue
      if (shape !== known.shapes[0]) moveToFront(known.shapes, shape)
      known.credit = Math.min(maxCredit, known.credit + creditOfFit)
      return reading
    }
    known.credit = Math.min(maxCredit, known.credit + creditOfMiss)
    return null
  }

  /** Keeps the shape of a whole reply that had no known one. */
  learn (plan: Plan, reply: Buffer): void {
    const known = this.of(plan)
    if (reply.length > maxShapedBytes || known.credit < 1) return
    known.credit -= 1
    const shape = learnShape(reply, plan)
    if (shape === null) return
    known.shapes.unshift(shape)
    known.shapes.splice(maxShapes)
  }

  private of (plan: Plan): Known {
    const known = this.known.get(plan)
    if (known !== undefined) return known
    const made = { shapes: [], credit: maxCredit }
    this.known.set(plan, made)
    return made
  }
}

function moveToFront (shapes: ReplyShape[], shape: ReplyShape): void {
  shapes.splice(shapes.indexOf(shape), 1)
  shapes.unshift(shape)
}
