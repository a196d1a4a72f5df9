/** Answers to the interrupts of a simulated thread. */
import type { Commit } from "@statewright/core/store";
import type { AddViolation } from "./checkpoint-log.ts";

interface StoredAnswer {
  /** Start of the effect that the interrupt is about; empty for other interrupts. */
  readonly about: string;
  readonly answer: string;
}

/** Durable answers by branch and interrupt. */
export class AnswerLog {
  readonly #addViolation: AddViolation;
  readonly #canBeInDoubt: () => boolean;
  readonly #answers = new Map<string, StoredAnswer>();

  constructor(canBeInDoubt: () => boolean, addViolation: AddViolation) {
    this.#canBeInDoubt = canBeInDoubt;
    this.#addViolation = addViolation;
  }

  /** Lists the ids of interrupts with a durable answer. */
  list(branch: string): readonly string[] {
    const prefix = `${branch} `;
    return [...this.#answers.keys()].filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length));
  }

  recordCommit({ branch, interrupts = [] }: Commit): void {
    for (const { id, key, about = "", answer, expiredAt } of interrupts) {
      if (key.endsWith("in_doubt") && !this.#canBeInDoubt())
        this.#addViolation("I2", `no process died, and the interrupt ${id} was raised`);
      const location = `${branch} ${id}`;
      const before = this.#answers.get(location);
      // A call that is in doubt again raises a new interrupt, about another start.
      const isSameStart = before?.about === about;
      if (answer !== undefined && isSameStart && before.answer !== answer)
        this.#addViolation("I1", `the interrupt ${id} was answered twice`);
      if (answer === undefined && expiredAt === undefined && isSameStart)
        this.#addViolation("I1", `the interrupt ${id} was reopened after its answer`);
      if (answer === undefined) this.#answers.delete(location);
      else this.#answers.set(location, { about, answer });
    }
  }
}
