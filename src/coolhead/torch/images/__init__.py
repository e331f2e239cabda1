"""From images to features: backbones, extraction, fine-tuning."""
