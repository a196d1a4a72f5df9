/** Server process, from the side of the gate. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import * as z from "zod";

const program = fileURLToPath(new URL("./server-process.ts", import.meta.url));

const messageSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("standby") }),
  z.object({ kind: z.literal("listening"), port: z.number() }),
]);

/** Server process that stands by, and then listens. */
export class ServedProcess {
  readonly #child: ChildProcess;
  readonly #listening: Promise<number>;
  readonly #closed: Promise<unknown>;
  /** Resolves when the process has loaded its modules. */
  readonly isStandingBy: Promise<void>;
  /** What the process has written to stderr: its failures. */
  stderr = "";

  constructor(folder: string, port = 0) {
    const child = spawn(process.execPath, ["--no-warnings", program, folder, String(port)], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { NODE_COMPILE_CACHE: join(folder, "compiled"), ...process.env },
    });
    this.#child = child;
    this.#closed = once(child, "close");
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    let standBy = (): void => undefined;
    this.isStandingBy = new Promise((resolve) => {
      standBy = resolve;
    });
    this.#listening = new Promise((resolve, reject) => {
      createInterface({ input: child.stdout }).on("line", (line) => {
        const message = messageSchema.parse(JSON.parse(line));
        if (message.kind === "listening") resolve(message.port);
        else standBy();
      });
      child.once("close", (code, signal) => reject(new Error(`a server ended with ${code ?? signal}: ${this.stderr}`)));
    });
    // A process that stands by may end before it listens.
    this.#listening.catch(() => undefined);
  }

  /** Opens the store and listens; returns the port. */
  async listen(): Promise<number> {
    this.#child.stdin?.write("listen\n");
    return await this.#listening;
  }

  /** Kills the process by SIGKILL. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#closed;
  }

  /** Drains the process by SIGTERM, and waits for its end. */
  async drain(): Promise<void> {
    this.#child.kill("SIGTERM");
    await this.#closed;
  }
}
