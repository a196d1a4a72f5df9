/** Calls about one thread. */
import type { AnswersOf, GraphMap, InputOf, ValuesOf } from "./graph-types.ts";
import type { ApiRequest, Requester } from "./request.ts";
import type {
  Artifact,
  Branch,
  Diff,
  Json,
  JsonObject,
  NewFork,
  OnBusy,
  Outcome,
  Page,
  PageQuery,
  Run,
  RunQuery,
  State,
  StatePlace,
  StateWrite,
  Thread,
  ThreadEvent,
  ThreadPatch,
  UploadedFile,
  UserMessage,
  WrittenState,
} from "./server-types.ts";
import { type EventOptions, readRunEvents, readThreadEvents } from "./thread-events.ts";

/** Options of calls that start or continue a run. */
export interface CallOptions {
  /** Branch of the thread. Default: the head branch. */
  readonly branch?: string;
  /** Idempotency key in the thread: a repeated call starts nothing, and the client may repeat it after a lost connection. */
  readonly key?: string;
  /** Nodes before and after which the run pauses. Default: none. */
  readonly breakpoints?: { readonly before?: readonly string[]; readonly after?: readonly string[] };
  /** What the server may use for the context of the run. */
  readonly context?: Json;
  /** Ends the call, and not the run. */
  readonly signal?: AbortSignal;
}

/** Options of a run. */
export interface RunCallOptions<Graph> extends CallOptions {
  /** Input of the graph; messages of the user may be texts. */
  readonly input: InputOf<Graph>;
  /** Handling of a thread with an unfinished run. Default `reject`. */
  readonly onBusy?: OnBusy;
  /** Plain data of the run, for filters of lists. */
  readonly metadata?: JsonObject;
}

/** Options of answers. */
export interface AnswerOptions<Graph> extends CallOptions {
  /** By the id of the interrupt, or by its key. */
  readonly answers: AnswersOf<Graph>;
  /** Checkpoint at which the interrupts were seen: a thread that has moved refuses the answers. */
  readonly ifCheckpoint?: number;
}

/** Body of a request that starts or continues a run, and the signal of its call. */
interface StartBody {
  readonly key?: string;
  readonly signal?: AbortSignal;
  readonly [field: string]: unknown;
}

/** Statuses of a run that goes on by itself. */
const activeStatuses = new Set<Run["status"]>(["queued", "running", "crashed"]);

/** Calls about one thread. All methods throw `ClientError`. */
export class ThreadClient<Graphs extends GraphMap> {
  readonly id: string;
  readonly #requester: Requester;
  readonly #path: string;

  constructor(requester: Requester, id: string) {
    this.id = id;
    this.#requester = requester;
    this.#path = `/threads/${encodeURIComponent(id)}`;
  }

  /** Reads the thread. */
  get(): Promise<Thread> {
    return this.#read("");
  }

  /** Changes title and metadata. */
  update(patch: ThreadPatch): Promise<Thread> {
    return this.#requester.sendJson({ method: "PATCH", path: this.#path, body: patch });
  }

  /** Deletes the thread with its runs, states and artifacts. */
  delete(): Promise<void> {
    return this.#requester.sendJson({ method: "DELETE", path: this.#path });
  }

  /** Copies the thread under an id, by default a new one. */
  copy(id?: string): Promise<Thread> {
    return this.#post("/copies", { id });
  }

  /** Starts a run and resolves when it is saved. */
  run<Name extends keyof Graphs & string>(graph: Name, options: RunCallOptions<Graphs[Name]>): Promise<Run> {
    return this.#start("/runs", { graph, ...options });
  }

  /** Starts a run, and waits until it rests: done, waiting for an answer, paused, failed or cancelled. */
  async runToRest<Name extends keyof Graphs & string>(
    graph: Name,
    options: RunCallOptions<Graphs[Name]>,
  ): Promise<Outcome<ValuesOf<Graphs[Name]>>> {
    return await this.wait((await this.run(graph, options)).id, options);
  }

  /** Starts a run and streams its events until it rests. */
  stream<Name extends keyof Graphs & string>(
    graph: Name,
    options: RunCallOptions<Graphs[Name]>,
  ): AsyncIterable<ThreadEvent> {
    return this.#startStream("/runs", { graph, ...options });
  }

  /** Answers interrupts, and resolves when the answers are saved. */
  answer<Name extends keyof Graphs & string>(options: AnswerOptions<Graphs[Name]>): Promise<Run> {
    return this.#start("/answers", { ...options });
  }

  /** Answers interrupts, and streams the events of the run until it rests. */
  streamAnswer<Name extends keyof Graphs & string>(options: AnswerOptions<Graphs[Name]>): AsyncIterable<ThreadEvent> {
    return this.#startStream("/answers", { ...options });
  }

  /** Continues a paused, failed or crashed run. */
  resume(options: CallOptions = {}): Promise<Run> {
    return this.#start("/resume", { ...options });
  }

  /** Continues the thread at a message of the user that is replaced by this one, on a new branch. */
  edit(
    message: UserMessage & { readonly id: string },
    options: Pick<CallOptions, "branch" | "key" | "signal"> = {},
  ): Promise<Run> {
    return this.#start(`/messages/${encodeURIComponent(message.id)}/edits`, { message, ...options });
  }

  /** Cancels the run at work, or the named run. With `wait`, resolves when it has ended. */
  cancel(
    options: {
      readonly run?: string;
      readonly branch?: string;
      readonly reason?: string;
      readonly wait?: boolean;
    } = {},
  ): Promise<Run> {
    return this.#post("/cancel", options);
  }

  /** Pauses the run at work at the end of its superstep. */
  pause(options: { readonly run?: string; readonly branch?: string; readonly reason?: string } = {}): Promise<Run> {
    return this.#post("/pause", options);
  }

  /** Sends messages to the run at work: `steer` at its next superstep, `followUp` at its end. */
  send(
    messages: readonly UserMessage[],
    options: { readonly kind?: "steer" | "followUp"; readonly id?: string; readonly branch?: string } = {},
  ): Promise<{ readonly id: string }> {
    const { kind = "steer", id, branch } = options;
    return this.#post("/inbox", { kind, id, branch, messages }, { isRepeatable: id !== undefined });
  }

  /** Lists the runs of the thread, newest first. */
  runs(query: RunQuery = {}): Promise<Page<Run>> {
    return this.#read("/runs", { ...query });
  }

  /** Waits until a run of the thread rests, and returns it with its state. */
  async wait<Values = JsonObject>(
    run: string,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<Outcome<Values>> {
    const { signal } = options;
    const read = (): Promise<Run> =>
      this.#requester.sendJson({ method: "GET", path: `/runs/${encodeURIComponent(run)}`, signal });
    let newest = await read();
    while (activeStatuses.has(newest.status)) {
      for await (const _ of this.events({
        end: "idle",
        views: ["steps"],
        ...(signal === undefined ? {} : { signal }),
      }));
      signal?.throwIfAborted();
      newest = await read();
    }
    const hasState = newest.attempt > 0;
    return { run: newest, state: hasState ? await this.state<Values>({ branch: newest.branch }) : undefined };
  }

  /** Reads the state at a checkpoint, by default the newest. */
  state<Values = JsonObject>(place: StatePlace = {}): Promise<State<Values>> {
    return this.#read("/state", { ...place });
  }

  /** Lists the states of a branch, newest first. */
  history<Values = JsonObject>(query: PageQuery & { readonly branch?: string } = {}): Promise<Page<State<Values>>> {
    return this.#read("/history", { ...query });
  }

  /** Lists the branches of the thread, oldest first. */
  async branches(): Promise<readonly Branch[]> {
    return (await this.#read<{ readonly data: readonly Branch[] }>("/branches")).data;
  }

  /** Compares two checkpoints. */
  diff(from: number, to: number): Promise<Diff> {
    return this.#read("/diff", { from, to });
  }

  /** Lists the large outputs of tools, oldest first. */
  artifacts(query: PageQuery & { readonly run?: string } = {}): Promise<Page<Artifact>> {
    return this.#read("/artifacts", { ...query });
  }

  /** Reads the body of an artifact, by its key or handle. */
  async artifact(key: string): Promise<Blob> {
    const path = `${this.#path}/artifacts/${encodeURIComponent(key)}`;
    return await (await this.#requester.send({ method: "GET", path })).blob();
  }

  /** Uploads a file for a message of the thread, which must exist. */
  upload(
    body: Blob | Uint8Array<ArrayBuffer>,
    options: { readonly mimeType: string; readonly name?: string },
  ): Promise<UploadedFile> {
    const content = { body, type: "application/octet-stream" };
    const path = `${this.#path}/files`;
    return this.#requester.sendJson({ method: "POST", path, query: { ...options }, content, isRepeatable: true });
  }

  /** Exports the thread for `importThread` of a client. Needs the scope `admin`. */
  async export(): Promise<string> {
    return await (await this.#requester.send({ method: "GET", path: `${this.#path}/export` })).text();
  }

  /** Creates a branch from a checkpoint. */
  fork<Values = JsonObject>(fork: NewFork): Promise<WrittenState<Values>> {
    return this.#post("/forks", fork);
  }

  /** Writes a state on top of the newest. */
  updateState<Values = JsonObject>(write: StateWrite): Promise<WrittenState<Values>> {
    return this.#post("/state", write);
  }

  /** Streams the events of the thread; connects again after a lost connection. */
  events(options: EventOptions = {}): AsyncIterable<ThreadEvent> {
    return readThreadEvents(this.#requester, this.id, options);
  }

  #read<Value>(path: string, query: ApiRequest["query"] = {}): Promise<Value> {
    return this.#requester.sendJson({ method: "GET", path: `${this.#path}${path}`, query });
  }

  #post<Value>(path: string, body: unknown, options: Pick<ApiRequest, "isRepeatable"> = {}): Promise<Value> {
    return this.#requester.sendJson({ method: "POST", path: `${this.#path}${path}`, body, ...options });
  }

  #start(path: string, { signal, ...body }: StartBody): Promise<Run> {
    return this.#requester.sendJson(this.#createStart(path, body, signal));
  }

  async *#startStream(path: string, { signal, ...body }: StartBody): AsyncGenerator<ThreadEvent, undefined, undefined> {
    const request = this.#createStart(path, body, signal);
    const first = await this.#requester.send({ ...request, headers: { accept: "text/event-stream" } });
    yield* readRunEvents(this.#requester, { thread: this.id, first, signal });
    return undefined;
  }

  #createStart(path: string, body: StartBody, signal: AbortSignal | undefined): ApiRequest {
    return { method: "POST", path: `${this.#path}${path}`, body, signal, isRepeatable: body.key !== undefined };
  }
}
