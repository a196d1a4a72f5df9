/** A part of a stream, of any specification: the names are the same in all three, and later versions add to them. */
import type { LanguageModelV2StreamPart, LanguageModelV3StreamPart, LanguageModelV4StreamPart } from "@ai-sdk/provider";

/** Every part that some specification knows. */
export type StreamPart = LanguageModelV2StreamPart | LanguageModelV3StreamPart | LanguageModelV4StreamPart;

/** The parts of one type. */
export type Part<Type extends StreamPart["type"]> = Extract<StreamPart, { type: Type }>;
