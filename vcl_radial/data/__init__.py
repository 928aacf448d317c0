"""Data that the tracks learn from: image streams and photographs."""
