/**
 * Model with recorded answers in a file: recorded once with a real model, then replayed without network and key.
 * Requests are matched by content, without generated ids and times; an unrecorded request is rejected with the
 * differences.
 */
import { type Model, type ModelDelta, type ModelReply, type ModelRequest, StatewrightError } from "@statewright/core";
import { createPatternRedactor, invalidOption } from "@statewright/core/adapter";
import { openRecording, type Recording, type RecordingMode } from "./recording/recording.ts";
import { redactDeltas } from "./recording/redact.ts";
import { computeDigest, listDifferences, normalizeRequest } from "./recording/request-digest.ts";
import { checkTranscript } from "./transcript.ts";

/** Options of `recordedModel`. */
export interface RecordedModelOptions {
  /** Model that answers while recording. */
  readonly model?: Model;
  /** Default `replay`. */
  readonly mode?: RecordingMode;
  /**
   * Texts to redact in the file, in addition to texts that look like a key and values under a name such as
   * `password`. Both recording and replay see the replacement text.
   */
  readonly redact?: readonly (string | RegExp)[];
  /** Removes varying parts from a request, such as today's date in the instructions. */
  readonly normalise?: (request: ModelRequest) => ModelRequest;
}

/** Model that replays a file. */
export interface RecordedModel extends Model {
  readonly script?: undefined;
  /** Every received request, including refused requests. */
  readonly requests: readonly ModelRequest[];
}

/**
 * Creates a model that replays the recording at `path`, and records new answers if `mode` allows. A repeated request gets the
 * next recorded answer, then the last answer. Failures pass through unrecorded. The file is readable JSON to keep
 * next to the test; each new answer rewrites the file atomically.
 *
 * ```ts
 * const model = recordedModel(new URL("weather.json", import.meta.url), { model: aiModel(anthropic("claude-sonnet-4-5")), mode: "auto" });
 * ```
 *
 * Throws `invalid_option` for a missing or invalid file, and for a recording mode without a model. Rejects with
 * `model_failed` for an unrecorded request, and with `invalid_transcript`.
 */
export function recordedModel(path: string | URL, options: RecordedModelOptions = {}): RecordedModel {
  const { model, mode = "replay", redact = [], normalise = returnRequest } = options;
  const redactData = createPatternRedactor("recordedModel", redact);
  if (mode !== "replay" && model === undefined)
    throw invalidOption({
      where: "recordedModel",
      option: "model",
      expected: `a model for the mode "${mode}"`,
      got: model,
      fix: 'Add { model }, or use the mode "replay"',
    });
  const recording = openRecording(path, mode, model?.id);
  const requests: ModelRequest[] = [];
  /** Number of answers per request digest. */
  const answerCounts = new Map<string, number>();

  const recordReply = async (
    sourceModel: Model,
    digest: string,
    normalizedRequest: unknown,
    ...[request, at]: Parameters<Model["respond"]>
  ): Promise<ModelReply> => {
    const deltas: ModelDelta[] = [];
    const reply = await sourceModel.respond(request, {
      ...at,
      delta: (delta) => {
        deltas.push(delta);
        at.delta?.(delta);
      },
    });
    recording.add({
      digest,
      request: normalizedRequest,
      reply: redactData(reply),
      deltas: redactDeltas(deltas, redactData),
    });
    return reply;
  };

  return {
    id: model?.id ?? recording.model,
    requests,
    ...(model?.images === undefined ? {} : { images: model.images }),
    respond: async (request, at) => {
      requests.push(structuredClone(request));
      checkTranscript(request.messages);
      at.signal.throwIfAborted();
      const normalizedRequest = normalizeRequest(redactData(normalise(request)));
      const digest = computeDigest(normalizedRequest);
      const nth = answerCounts.get(digest) ?? 0;
      answerCounts.set(digest, nth + 1);
      const known = mode === "record" ? [] : recording.entries().filter((entry) => entry.digest === digest);
      const entry = known[Math.min(nth, known.length - 1)];
      if (entry === undefined) {
        if (model === undefined || mode === "replay") throw createUnrecordedError(recording, normalizedRequest);
        return recordReply(model, digest, normalizedRequest, request, at);
      }
      for (const delta of entry.deltas) {
        at.delta?.(delta);
        await Promise.resolve();
        at.signal.throwIfAborted();
      }
      return structuredClone(entry.reply);
    },
  };
}

function returnRequest(request: ModelRequest): ModelRequest {
  return request;
}

/** Creates the error of an unrecorded request, with the differences to the nearest recorded request. */
function createUnrecordedError({ name, entries }: Recording, normalizedRequest: unknown): StatewrightError {
  const comparisons = entries().map((entry, index) => ({
    index,
    found: listDifferences(entry.request, normalizedRequest),
  }));
  const [nearest] = comparisons.sort((one, other) => one.found.length - other.found.length);
  const detail =
    nearest === undefined
      ? "the recording is empty"
      : `the nearest, number ${nearest.index + 1}, differs in ${nearest.found.slice(0, maxShownDifferences).join("; ")}${nearest.found.length > maxShownDifferences ? `; and ${nearest.found.length - maxShownDifferences} more` : ""}`;
  return new StatewrightError("model_failed", {
    what: `recordedModel: expected a recorded request, got a request without an answer in ${name}: ${detail}`,
    next: 'Fix the differences, or record the request with recordedModel(path, { model, mode: "auto" })',
    details: { retryable: false, kind: "invalid_request", differences: nearest?.found ?? [] },
  });
}

const maxShownDifferences = 5;
